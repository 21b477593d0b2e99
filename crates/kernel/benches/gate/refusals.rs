//! Processor time of the server's side for each refused new connection, softirq included.
//!
//! nginx and the gate get the same load from the same clients in the same setting. Real clients share one processor, which
//! is busier with them than the server is with refusing, so that most packets find the server's thread asleep and wake it;
//! waking costs more than the packet, and tells more of this machine than of the gate. Hence the second setting, in which
//! both sides' interfaces moderate their wakes as network cards do; and the rows sent raw, which keep the server busy.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use flashweir_kernel::gate::{Hook, Refusal};
use flashweir_testkit::{Testbed, require_program};

use crate::arena::{CLIENT, Nginx, Receiving, Refuser, SERVER, join_received, spent_ns};
use crate::clients::Clients;
use crate::raw;

const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(2);
/// As fast as they are answered, and as fast as nginx can be asked to without being busy all the time.
const LOADS: [(&str, Clients); 2] = [
    ("256 clients, as fast as they can", Clients { count: 256, rate_per_s: None }),
    ("256 clients, 5,000 a second", Clients { count: 256, rate_per_s: Some(5_000) }),
];
const SETTINGS: [(&str, Duration); 3] = [
    ("each packet wakes", Duration::ZERO),
    ("wakes 50 us apart", Duration::from_micros(50)),
    ("wakes 1 ms apart", Duration::from_millis(1)),
];
const HOOKS: [(&str, Hook); 2] = [("in the driver", Hook::Native), ("at the stack's door", Hook::Generic)];
/// What is sent raw, and what it stands for.
const FLOODS: [(&str, Refusal); 3] = [
    ("answer, four packets each sent raw", Refusal::Answer),
    ("reset, sent raw", Refusal::Reset),
    ("drop, sent raw", Refusal::Drop),
];

/// Between two packets that find the thread asleep.
const ALONE: Duration = Duration::from_micros(200);

pub(crate) fn measure() {
    println!(
        "Processor time of the server's side for each refused new connection, us (median of {ROUNDS} rounds of \
         {ROUND:?}; refusals a second in brackets)"
    );
    let test = "costs of refusals";
    let Some(mut testbed) = Testbed::require(test, &[CLIENT, SERVER]) else { return };
    let Some(nginx) = require_program("nginx", test) else { return };
    let [_, server] = testbed.link(CLIENT, SERVER);
    let server = SocketAddr::from((server, 8_080));
    let nginx = Nginx::start(&testbed, &nginx, server);

    let mut cheapest_us = f64::MAX;
    for (setting, wake_every) in SETTINGS {
        for (load, clients) in LOADS {
            println!("  {load}, {setting}");
            let mut costs = [const { Vec::new() }; 3];
            for _ in 0..ROUNDS {
                costs[0].push(nginx_refuses(&testbed, &nginx, server, wake_every, clients));
                for (costs, (_, hook)) in costs[1..].iter_mut().zip(HOOKS) {
                    costs.push(gate_answers(&testbed, server, hook, wake_every, clients));
                }
            }
            let [by_nginx, by_gate @ ..] = costs.map(median);
            println!("    {by_nginx}  nginx, return 503");
            for (cost, (hook, _)) in by_gate.into_iter().zip(HOOKS) {
                println!("    {cost}  answer {hook}: nginx has {:.1} times that", by_nginx.us / cost.us);
            }
            cheapest_us = cheapest_us.min(by_nginx.us);
        }
    }
    println!("  Sent raw, each packet wakes; beside nginx at its cheapest above");
    for (hook_name, hook) in HOOKS {
        for (name, refusal) in FLOODS {
            let run = || gate_refuses_raw(&testbed, server, hook, refusal, Duration::ZERO);
            let cost = median((0..ROUNDS).map(|_| run()).collect());
            println!("    {cost}  {name}, {hook_name}: nginx has {:.1} times that", cheapest_us / cost.us);
        }
    }
    let alone = || gate_refuses_raw(&testbed, server, Hook::Native, Refusal::Drop, ALONE);
    let cost = median((0..ROUNDS).map(|_| alone()).collect());
    println!(
        "    {cost}  drop in the driver, {ALONE:?} apart: the difference is what waking costs, for each packet that comes alone"
    );
}

/// What a refusal cost, and how many there were a second.
#[derive(Clone, Copy)]
struct Cost {
    us: f64,
    per_s: f64,
}

impl Cost {
    fn of(spent_ns: u64, refused: u64) -> Self {
        Self { us: spent_ns as f64 / 1e3 / refused as f64, per_s: refused as f64 / ROUND.as_secs_f64() }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>6.2} ({:>6.0})", self.us, self.per_s)
    }
}

fn median(mut costs: Vec<Cost>) -> Cost {
    costs.sort_by(|one, other| one.us.total_cmp(&other.us));
    costs[costs.len() / 2]
}

fn nginx_refuses(
    testbed: &Testbed,
    nginx: &Nginx,
    server: SocketAddr,
    wake_every: Duration,
    clients: Clients,
) -> Cost {
    join_received(testbed, true);
    let receiving = Receiving::start(testbed, wake_every);
    let process = nginx.process.id();
    let before_ns = spent_ns(process) + receiving.spent_ns();
    let outcomes = testbed.inside(CLIENT, || clients.ask(server, ROUND, u64::MAX));
    let spent_ns = spent_ns(process) + receiving.spent_ns() - before_ns;
    drop(receiving);
    join_received(testbed, false);
    if outcomes.answered() < outcomes.sum() {
        println!("    not all of nginx's clients were answered: {outcomes:?}");
    }
    Cost::of(spent_ns, outcomes.answered())
}

fn gate_answers(
    testbed: &Testbed,
    server: SocketAddr,
    hook: Hook,
    wake_every: Duration,
    clients: Clients,
) -> Cost {
    let refuser = Refuser::new(testbed, server, Refusal::Answer, hook);
    let receiving = Receiving::start(testbed, wake_every);
    let before_ns = receiving.spent_ns();
    let outcomes = testbed.inside(CLIENT, || clients.ask(server, ROUND, u64::MAX));
    let spent_ns = receiving.spent_ns() - before_ns;
    assert_eq!(outcomes.answered(), outcomes.sum(), "{outcomes:?}");
    let counts = refuser.gate.counters().expect("counters")[0];
    assert_eq!((counts.admitted, counts.unsent), (0, 0), "{counts:?}");
    Cost::of(spent_ns, outcomes.answered())
}

fn gate_refuses_raw(
    testbed: &Testbed,
    server: SocketAddr,
    hook: Hook,
    refusal: Refusal,
    pause: Duration,
) -> Cost {
    let Refuser { gate, .. } = &Refuser::new(testbed, server, refusal, hook);
    let frames =
        if refusal == Refusal::Answer { raw::exchanges(gate, server) } else { raw::openings(server) };
    let receiving = Receiving::start(testbed, Duration::ZERO);
    let (before, before_ns) = (gate.counters().expect("counters")[0], receiving.spent_ns());
    testbed.inside(CLIENT, || raw::flood(&frames, ROUND, pause));
    let (counts, spent_ns) = (gate.counters().expect("counters")[0], receiving.spent_ns() - before_ns);
    assert_eq!((counts.admitted, counts.unsent), (0, 0), "{counts:?}");
    let refused = [counts, before].map(|counts| match refusal {
        Refusal::Answer => counts.responses,
        _ => counts.reset + counts.dropped,
    });
    Cost::of(spent_ns, refused[0] - refused[1])
}
