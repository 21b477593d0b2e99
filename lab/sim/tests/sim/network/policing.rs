//! Goal: disciplines that treat flows differently do at a link what they are for, and their sources behave
//! as they should. Method: responsive flows beside a flood through one bottleneck, with several seeds; the
//! worst is judged.

use flashweir_core::measure::jain_index;
use flashweir_core::{Duration, Instant};
use flashweir_sim::network::{
    Buffer, Discipline, FeedbackBooks, FeedbackId, FeedbackSettings, LinkId, LinkSettings, Network,
    NetworkError, NoStage, PurgeSettings, RateControl, Rem,
};

const RATE: u64 = 10_000_000;
const PHI: f64 = 1.001;
/// The price at which half of all packets is marked.
const PRICE: f64 = 693.0;

fn rem() -> Rem {
    Rem { gamma: 0.2, update: Duration::from_millis(500), target_packets: 250.0, ..Rem::default() }
}

fn vegas(share_of_link: f64) -> RateControl {
    RateControl::Vegas { payment: RATE as f64 / 8_000.0 * share_of_link * PRICE, phi: PHI }
}

struct Run {
    network: Network,
    bottleneck: LinkId,
    sources: Vec<FeedbackId>,
}

/// Sources of 1000 bytes a packet through a link of 10 Mb/s, 100 ms of round trip, for `seconds`.
fn run(discipline: Discipline, controls: &[RateControl], seconds: u64, seed: u64) -> Run {
    let mut network = Network::new(seed);
    let (client, server) = (network.add_node().unwrap(), network.add_node().unwrap());
    let wide = LinkSettings::drop_tail(RATE, Duration::from_millis(50), Buffer::Packets(1_250));
    let bottleneck = network.add_link(client, server, &LinkSettings { discipline, ..wide.clone() }).unwrap();
    network.add_link(server, client, &wide).unwrap();
    let route = network.add_route(client, server).unwrap();
    let sources = controls
        .iter()
        .enumerate()
        .map(|(n, &control)| {
            let from = Instant::from_millis(37 * n as u64 + seed % 11);
            let settings =
                FeedbackSettings { route, packet_bytes: 1_000, from, until: Instant::MAX, control };
            network.add_feedback(settings).unwrap()
        })
        .collect();
    let mut run = Run { network, bottleneck, sources };
    run.go_on(Instant::from_secs(seconds));
    run
}

impl Run {
    fn go_on(&mut self, until: Instant) {
        while self.network.next(&mut NoStage, until).unwrap().is_some() {}
        self.network.check().unwrap();
    }

    fn books(&self) -> Vec<FeedbackBooks> {
        self.sources.iter().map(|&source| self.network.feedback(source)).collect()
    }

    /// Packets a second that each source got through in the next `seconds`.
    fn rates(&mut self, seconds: u64) -> Vec<f64> {
        let before = self.books();
        self.go_on(self.network.now() + Duration::from_secs(seconds));
        let after = self.books();
        let delivered =
            |(before, after): (&FeedbackBooks, &FeedbackBooks)| after.delivered - before.delivered;
        before.iter().zip(&after).map(|pair| delivered(pair) as f64 / seconds as f64).collect()
    }
}

#[test]
fn sources_that_pay_twice_as_much_get_twice_as_much() {
    let controls = [vegas(0.1), vegas(0.1), vegas(0.2), vegas(0.2), vegas(0.4)];
    let rates = run(Discipline::Rem(rem()), &controls, 120, 1).rates(120);
    let of_cheap = rates[0].midpoint(rates[1]);
    for (rate, times) in rates.iter().zip([1.0, 1.0, 2.0, 2.0, 4.0]) {
        assert!((rate / of_cheap / times - 1.0).abs() < 0.1, "{rates:?}");
    }
    assert!(rates.iter().sum::<f64>() > 1_200.0, "{rates:?}");
}

#[test]
fn an_unresponsive_source_repeats_what_was_lost_and_sends_no_less() {
    let flood = [RateControl::Unresponsive { rate_bits_per_s: 2 * RATE }];
    let run = run(Discipline::DropTail, &flood, 20, 1);
    let FeedbackBooks { sent, repeated, delivered, delivered_repeats } = run.books()[0];
    assert!((49_800..=50_000).contains(&sent), "{sent}");
    // Half is lost, and each loss is repeated once.
    assert!((0.4..0.5).contains(&(repeated as f64 / sent as f64)), "{repeated} of {sent}");
    assert!((0.49..0.56).contains(&(delivered as f64 / sent as f64)), "{delivered} of {sent}");
    assert!(delivered_repeats <= repeated, "{delivered_repeats}");
}

/// Ten flows that pay and one that sends 9 Mb/s: each gets an eleventh of the link under Purge; under
/// drop-tail and REM the flood takes nearly all.
#[test]
fn purge_gives_ten_flows_their_share_beside_a_flood() {
    let mut controls = vec![vegas(1.0 / 11.0); 10];
    controls.push(RateControl::Unresponsive { rate_bits_per_s: 9_000_000 });
    let fair = RATE as f64 / 8_000.0 / 11.0;
    for seed in [3, 17, 59] {
        let purge = Discipline::Purge(PurgeSettings::over(rem()));
        let mut run_of_purge = run(purge, &controls, 60, seed);
        let rates = run_of_purge.rates(120);
        let fairness = jain_index(rates.iter().copied()).unwrap();
        println!("seed {seed}: fairness {fairness:.4} {rates:.0?}");
        assert!(fairness >= 0.995, "seed {seed}: {fairness} {rates:?}");
        assert!(rates.iter().all(|rate| *rate >= 0.8 * fair), "seed {seed}: {rates:?}");
        let status = run_of_purge.network.discipline(run_of_purge.bottleneck);
        assert_eq!(status.active_flows, Some(11.0), "seed {seed}");
        // 9 Mb/s are 1125 packets a second.
        for discipline in [Discipline::DropTail, Discipline::Rem(rem())] {
            let rates = run(discipline, &controls, 60, seed).rates(60);
            assert!(rates[10] > 850.0, "seed {seed}: {rates:?}");
        }
    }
}

/// Goal: nothing is dropped for fairness where there is room. Method: one flow with half of the link beside
/// nine that send little.
#[test]
fn purge_drops_nothing_on_a_link_with_room() {
    let mut controls = vec![RateControl::Unresponsive { rate_bits_per_s: 50_000 }; 9];
    controls.push(RateControl::Unresponsive { rate_bits_per_s: 5_000_000 });
    let mut run = run(Discipline::Purge(PurgeSettings::over(rem())), &controls, 30, 1);
    let rates = run.rates(30);
    assert!(rates[9] > 615.0, "{rates:?}");
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let mut network = Network::new(1);
    let (one, other) = (network.add_node().unwrap(), network.add_node().unwrap());
    let wide = LinkSettings::drop_tail(RATE, Duration::ZERO, Buffer::Packets(10));
    let mut error = |discipline| {
        network.add_link(one, other, &LinkSettings { discipline, ..wide.clone() }).unwrap_err().to_string()
    };
    let purge = PurgeSettings { cached_flows: 0, ..PurgeSettings::over(rem()) };
    assert_eq!(error(Discipline::Purge(purge)), "Purge cached_flows is 0; expected 1 to 65536");
    let black = Discipline::BlackLike { rem: rem(), period: Duration::ZERO };
    assert_eq!(error(black), "BLACK period is 0; expected at least 0.001 seconds");
    network.add_wire(one, other, &wide).unwrap();
    let route = network.add_route(one, other).unwrap();
    let settings = |control| FeedbackSettings {
        route,
        packet_bytes: 1_000,
        from: Instant::ZERO,
        until: Instant::MAX,
        control,
    };
    let mut error = |control| -> NetworkError { network.add_feedback(settings(control)).unwrap_err() };
    let stingy = error(RateControl::Vegas { payment: 0.0, phi: PHI });
    assert_eq!(stingy.to_string(), "Vegas payment is 0; expected above 0");
    let silent = error(RateControl::Unresponsive { rate_bits_per_s: 0 });
    assert_eq!(silent.to_string(), "source rate is 0; expected 1 to 1000000000000 bit/s");
}
