//! Goal: links in a file make the packet level it says, its statistics are those of the packets, and what
//! is wrong is reported in one line. Method: small texts; short runs with a known answer.

use crate::scenario::{Scenario, Settings, Sheet, swarm_text};
use flashweir_core::{Duration, Rate};
use flashweir_sim::network::{Buffer, Discipline, Red, Rem};
use flashweir_sim::request::{NetworkModel, PacketNetwork, Policy, run};
use flashweir_sim::router::{Controller, Reading};

const WHOLE: &str = "duration = '20s'\nbin = '1s'\n[[link]]\nbetween = ['homes', 'shop']\nrate = '2Mb/s'\nbuffer = '20 packets'\n\
                     [workload]\nrate = 10\n[[class]]\nname = 'a'\nwork = '1ms'\n\
                     clients = { at = 'homes', count = 10, rate = '1Mb/s', delay = '5ms' }\n";

fn read(text: &str) -> Result<Scenario, String> {
    Scenario::from_toml(text, "FILE", &Settings::default()).map_err(|error| error.to_string())
}

fn network(scenario: &Scenario) -> PacketNetwork {
    match scenario.run(1).network {
        NetworkModel::Packets(packets) => *packets,
        NetworkModel::Delay(_) => panic!("no packets"),
    }
}

/// The mean of one statistic over one run.
fn value(text: &str, name: &str) -> f64 {
    let scenario = read(text).unwrap();
    let sheet = Sheet::of(&scenario, &[run(&scenario.run(1)).unwrap()]);
    let line = sheet.lines.iter().find(|line| line.name() == name);
    line.and_then(|line| line.summary).unwrap_or_else(|| panic!("no {name}: {:?}", sheet.lines)).mean
}

#[test]
fn a_whole_network_says_everything() {
    let scenario = read(
        r#"
        duration = "60s"
        [[link]]
        name = "uplink"
        between = ["city", "router"]
        rate_there = "1Mb/s"
        rate_back = "9.4Mb/s"
        delay = "10ms"
        buffer = "6 packets"
        loss = 0.01
        discipline = "red"
        threshold_low = 2
        threshold_high = 5
        [[link]]
        between = ["router", "servers"]
        rate = "1Gb/s"
        buffer = "64 kB"
        discipline = "rem"
        target_packets = 9
        ecn = true
        [network]
        tcp = "2003"
        [workload]
        rate = 5
        [[class]]
        name = "readers"
        work = "1ms"
        server = "servers"
        clients = { at = "city", count = 30, rate = "21kb/s-10Mb/s", delay = "0.5ms-1.8s", buffer = "9 packets" }
        [[class]]
        name = "staff"
        work = "1ms"
        clients = { at = "router", count = 3, rate = "10Mb/s", delay = "0s" }
        [[class]]
        name = "guests"
        work = "1ms"
        [[transfer]]
        name = "backup"
        from = "servers"
        to = "city"
        starts = "5s"
        bytes = "10MB"
        [[datagrams]]
        name = "camera"
        from = "city"
        to = "servers"
        rate = "500kb/s"
        packet_bytes = 900
        during = "10s-30s"
        [controller]
        mode = "scoreboard"
        at = "router"
        link = "uplink"
        first_tick = "9s"
        "#,
    )
    .unwrap();
    let network = network(&scenario);
    assert_eq!((network.nodes, network.wires[0].ends, network.wires[1].ends), (3, [0, 1], [1, 2]));
    let [there, back] = [&network.wires[0].there, &network.wires[0].back];
    assert_eq!((there.rate_bits_per_s, back.rate_bits_per_s), (1_000_000, 9_400_000));
    assert_eq!((there.delay, there.buffer, back.loss), (Duration::from_millis(10), Buffer::Packets(6), 0.01));
    let red = |discipline: &Discipline| {
        matches!(discipline, Discipline::Red(Red { threshold_low: 2.0, marks: false, weight: 0.002, .. }))
    };
    assert!(red(&there.discipline) && red(&back.discipline));
    let rem = Rem { target_packets: 9.0, marks: true, ..Rem::default() };
    assert_eq!(
        (&network.wires[1].back.discipline, network.wires[1].back.buffer),
        (&Discipline::Rem(rem), Buffer::Bytes(64_000))
    );
    assert_eq!(
        (network.clients[0].access_bits_per_s, network.clients[0].access_buffer_packets),
        ((21_000, 10_000_000), 9)
    );
    assert_eq!(
        (network.clients[1].at, network.clients[1].access_delay),
        (1, (Duration::ZERO, Duration::ZERO))
    );
    // A class that says neither sits and goes where the one before does.
    let ways: Vec<_> = network.paths.iter().map(|path| (path.clients, path.server)).collect();
    assert_eq!(ways, [(0, 2), (1, 2), (1, 2)]);
    // A link that marks needs ends that understand marks.
    assert!(network.paths.iter().all(|path| path.tcp.ecn && path.tcp.window_initial == 2));
    assert_eq!(
        (network.transfers[0].bytes, network.transfers[0].starts),
        (Some(10_000_000), Duration::from_secs(5))
    );
    assert_eq!(
        (network.datagrams[0].packet_bytes, network.datagrams[0].ends),
        (900, Some(Duration::from_secs(30)))
    );
    let router = network.router.unwrap();
    // Only the first class crosses the link in the direction of the router.
    assert_eq!(
        (router.wire, router.guarded, router.first_tick),
        (0, vec![true, false, false], Duration::from_secs(9))
    );
    assert_eq!(
        (router.settings.interval, router.settings.reading),
        (Duration::from_secs(60), Reading::AsPublished)
    );
    assert_eq!(scenario.run(1).policy, Policy::None);
    assert_eq!(scenario.links()[1].name, "router-servers");
}

#[test]
fn controllers_are_where_the_file_says() {
    let at_gateway = read(&format!("{WHOLE}[controller]\nmode = 'static'\nrate = 5\n")).unwrap();
    assert!(
        matches!(at_gateway.run(1).policy, Policy::StaticRate { .. })
            && network(&at_gateway).router.is_none()
    );
    let at_router =
        read(&format!("{WHOLE}[controller]\nmode = 'static'\nrate = 5\nat = 'router'\nguards = ['a']\n"));
    let router = network(&at_router.unwrap()).router.unwrap();
    assert_eq!(router.settings.controller, Controller::Static(Rate::from_per_second(5.0)));
}

#[test]
fn what_is_wrong_is_told_with_line_and_key() {
    let check = |text: &str, wanted: &str| {
        let said = read(text).unwrap_err();
        assert!(said.starts_with(wanted), "{said:?} does not begin with {wanted:?}");
        assert!(!said.contains('\n'), "{said:?} has several lines");
    };
    let with = |more: &str| format!("{WHOLE}{more}");
    let instead = |old: &str, new: &str| WHOLE.replace(old, new);
    check(&with("[network]\none_way_delay = '5ms'\n"), "FILE:14: network.one_way_delay: there is [[link]]");
    check(&instead("rate = '2Mb/s'", "rate = 'fast'"), "FILE:5: link[0].rate: \"fast\" is not a rate");
    check(&instead("rate = '2Mb/s'", "rate_there = '2Mb/s'"), "FILE:3: link[0]: missing key `rate`");
    check(
        &instead("rate = '2Mb/s'", "rate = '2Mb/s'\nrate_back = '1Mb/s'"),
        "FILE:6: link[0].rate_back: rate is of both",
    );
    check(&instead("'20 packets'", "'much'"), "FILE:6: link[0].buffer: \"much\" is no room");
    check(&instead("buffer = '20 packets'\n", ""), "FILE:3: link[0]: missing key `buffer`");
    check(&instead("'20 packets'", "'20 packets'\nmtu = 1500"), "FILE:7: link[0].mtu: unknown key `mtu`");
    check(&instead("'20 packets'", "'20 packets'\ndelay = '2m'"), "FILE:3: link[0]: link delay is 120");
    check(&instead("'20 packets'", "'20 packets'\nloss = 2"), "FILE:7: link[0].loss: 2 is out of range");
    check(
        &instead("'20 packets'", "'20 packets'\ngamma = 2"),
        "FILE:7: link[0].gamma: goes with discipline = \"rem\", \"purge\",",
    );
    check(
        &instead("'20 packets'", "'20 packets'\necn = true"),
        "FILE:7: link[0].ecn: goes with discipline = \"red\", \"rem\",",
    );
    check(
        &instead("'20 packets'", "'20 packets'\ndiscipline = 'codel'"),
        "FILE:7: link[0].discipline: unknown variant `codel`",
    );
    let red = "'20 packets'\ndiscipline = 'red'\nthreshold_low = 20";
    check(&instead("'20 packets'", red), "FILE:3: link[0]: RED threshold_low is 20");
    check(&instead("'homes', 'shop'", "'homes'"), "FILE:4: link[0].between: invalid length 1");
    check(
        &instead("'homes', 'shop'", "'homes', 'homes'"),
        "FILE:4: link[0].between: it leads from \"homes\" to itself",
    );
    check(
        &instead("at = 'homes'", "at = 'moon'"),
        "FILE:12: class[0].clients.at: there is no node \"moon\": expected an end of a link",
    );
    let none =
        "FILE:12: class[0].clients.count: invalid value: integer `0`, expected a whole number above zero";
    check(&instead("count = 10", "count = 0"), none);
    check(
        &instead("count = 10", "count = 30000"),
        "FILE:9: class: 30000 clients of all classes are more than",
    );
    check(
        &instead("'5ms'", "'9ms-5ms'"),
        "FILE:12: class[0].clients.delay: \"9ms-5ms\": expected the least first",
    );
    check(&instead("'5ms'", "'0s-5ms'"), "FILE:12: class[0].clients.delay: expected the shortest above zero");
    check(
        &instead("clients =", "server = 'bank'\nclients ="),
        "FILE:12: class[0].server: there is no node \"bank\"",
    );
    let alone = instead("clients = {", "# {");
    check(&alone, "FILE:9: class[0]: missing key `clients`");
    let link = "[[link]]\nbetween = ['x', 'y']\nrate = '1Mb/s'\nbuffer = '9 packets'\n";
    check(&with(link), "FILE:9: class[0]: missing key `server`: at which node, of homes, shop, x, y?");
    let split = instead("clients =", "server = 'y'\nclients =") + link;
    check(&split, "FILE:12: class[0].server: no links lead from \"homes\" to \"y\"");
    check(
        &with("[[link]]\nname = 'a'\nbetween = ['homes', 'shop']\nrate = '1Mb/s'\nbuffer = '9 packets'\n"),
        "FILE:14: link[1].name: a class is called \"a\" already",
    );
    let transfer = |from: &str, more: &str| {
        with(&format!("[[transfer]]\nname = 't'\nfrom = '{from}'\nto = 'homes'\n{more}"))
    };
    check(&transfer("moon", ""), "FILE:15: transfer[0].from: there is no node \"moon\"");
    check(&transfer("homes", ""), "FILE:16: transfer[0].to: it is sent to where it comes from");
    check(&transfer("shop", "starts = '20s'\n"), "FILE:17: transfer[0].starts: the run is over by then");
    check(&transfer("shop", "bytes = '5'\n"), "FILE:17: transfer[0].bytes: \"5\" is not an amount of data");
    let source = "[[datagrams]]\nname = 'd'\nfrom = 'shop'\nto = 'homes'\nrate = '1Mb/s'\n";
    check(
        &with(&format!("{source}during = '20s-30s'\n")),
        "FILE:18: datagrams[0].during: the run is over by then",
    );
    check(&with(&format!("{source}packet_bytes = 0\n")), "FILE:18: datagrams[0].packet_bytes: invalid value");
    let router = |more: &str| with(&format!("[controller]\nat = 'router'\n{more}"));
    check(
        &router("link = 'x'\n"),
        "FILE:15: controller.link: there is no link \"x\": expected one of homes-shop",
    );
    check(&router("guards = ['b']\n"), "FILE:15: controller.guards: there is no class \"b\"");
    check(&router("guards = []\n"), "FILE:15: controller.guards: expected one class at least");
    check(&router("margin = 0.2\n"), "FILE:15: controller.margin: goes with at = \"gateway\"");
    check(&router("target = '1s'\n"), "FILE:15: controller.target: goes with at = \"gateway\"");
    check(&router("mode = 'sentry'\n"), "FILE:15: controller.mode: \"sentry\" goes with at = \"gateway\"");
    check(&router("interval = '100ms'\n"), "FILE:15: controller.interval: 0.1 s: expected 1 to 3600 s");
    check(&router("mode = 'static'\n"), "FILE:13: controller.rate: missing");
    check(&with("[controller]\nguards = ['a']\n"), "FILE:14: controller.guards: goes with at = \"router\"");
    let reversed = router("").replace("'homes', 'shop'", "'shop', 'homes'");
    check(
        &reversed,
        "FILE:13: controller.link: no class sends requests over link \"shop-homes\" from \"shop\" to \"homes\"",
    );
    check(
        &with("[accept]\nhomes-shop.p99_ms = '< 5'\n"),
        "FILE:14: accept.homes-shop.p99_ms: p99_ms is not told of a link, but of runs and classes",
    );
    check(
        &with("[accept]\nback_loss_ratio = '< 5'\n"),
        "FILE:14: accept.back_loss_ratio: back_loss_ratio is not told of the run, but of links",
    );
    check(
        &with("[window]\nw = '1s-2s'\n[accept]\nw.x.back_loss_ratio = '< 5'\n"),
        "FILE:16: accept.w.x: there is no class, link, transfer or source",
    );
}

#[test]
fn what_needs_links_is_refused_without() {
    let bare = "duration = '20s'\n[workload]\nrate = 10\n[[class]]\nname = 'a'\nwork = '1ms'\n";
    for (more, key) in [
        ("server = 'shop'\n", "class[0].server"),
        ("clients = { at = 'x', count = 1, rate = '1Mb/s', delay = '1ms' }\n", "class[0].clients"),
        ("[[transfer]]\nname = 't'\nfrom = 'a'\nto = 'b'\n", "transfer"),
        ("[[datagrams]]\nname = 't'\nfrom = 'a'\nto = 'b'\nrate = '1Mb/s'\n", "datagrams"),
        ("[network]\ntcp = '2003'\n", "network.tcp"),
        ("[controller]\nat = 'router'\n", "controller.at"),
    ] {
        let said = read(&format!("{bare}{more}")).unwrap_err();
        assert!(said.contains(&format!(": {key}: goes with [[link]]")), "{said}");
    }
}

#[test]
fn what_does_not_fit_into_memory_is_refused_before_it_runs() {
    let clients = WHOLE.replace("count = 10", "count = 20000, buffer = '16000000 packets'");
    let said = read(&clients).unwrap_err();
    assert!(said.contains("seeds: 3 runs would keep about"), "{said}");
    let links = WHOLE.replace("'20s'", "'40h'\nseeds = 25");
    let said = read(&links).unwrap_err();
    assert!(said.contains("seeds: 25 runs would keep about"), "{said}");
}

#[test]
fn a_transfer_fills_its_link_and_datagrams_beyond_it_are_lost() {
    let transfer = format!("{WHOLE}[[transfer]]\nname = 'backup'\nfrom = 'shop'\nto = 'homes'\n")
        .replace("rate = 10", "rate = 0.1");
    let goodput_kbps = value(&transfer, "backup.goodput_kbps");
    // Of 2 Mb/s, headers take 40 of 1500 bytes.
    assert!((1_750.0..1_950.0).contains(&goodput_kbps), "{goodput_kbps}");
    let utilization = value(&transfer, "homes-shop.back_utilization");
    assert!((0.93..=1.001).contains(&utilization), "{utilization}");
    assert!(value(&transfer, "homes-shop.there_utilization") < 0.1);
    let datagrams =
        format!("{WHOLE}[[datagrams]]\nname = 'flood'\nfrom = 'homes'\nto = 'shop'\nrate = '4Mb/s'\n")
            .replace("rate = 10", "rate = 0.1");
    for (name, wanted) in [
        ("flood.delivered_ratio", 0.5),
        ("homes-shop.there_loss_ratio", 0.5),
        ("homes-shop.back_utilization", 0.0),
    ] {
        let value = value(&datagrams, name);
        assert!((value - wanted).abs() < 0.02, "{name}: {value}");
    }
}

#[test]
fn windows_tell_of_links_when_they_are_asked() {
    let text = format!(
        "{WHOLE}[[datagrams]]\nname = 'flood'\nfrom = 'homes'\nto = 'shop'\nrate = '4Mb/s'\nduring = '10s-20s'\n\
         [window]\nquiet = '0s-10s'\nflooded = '11s-20s'\n\
         [accept]\nquiet.homes-shop.there_loss_ratio = '== 0'\nflooded.homes-shop.there_loss_ratio = '> 0.4'\n\
         flooded.flood.delivered_ratio = '< 0.6'\n"
    );
    let scenario = read(&text).unwrap();
    let sheet = Sheet::of(&scenario, &[run(&scenario.run(1)).unwrap()]);
    let accepted: Vec<_> = sheet
        .lines
        .iter()
        .filter(|line| line.accepted.is_some())
        .map(|line| (line.name(), line.is_ok()))
        .collect();
    assert_eq!(accepted.len(), 3);
    assert!(sheet.is_accepted(), "{accepted:?}");
}

#[test]
fn a_router_drops_what_comes_beyond_its_rate() {
    let text = format!("{WHOLE}[controller]\nat = 'router'\nmode = 'static'\nrate = 5\n")
        .replace("rate = 10", "rate = 20");
    let shed = value(&text, "router_shed_ratio");
    assert!(shed > 0.5, "{shed}");
    assert_eq!(value(&text, "shed_ratio"), 0.0);
    let open = text.replace("mode = 'static'", "mode = 'none'");
    assert_eq!(value(&open, "router_shed_ratio"), 0.0);
}

#[test]
fn swarms_have_packets_too() {
    let texts: Vec<String> = (0..400).map(swarm_text).collect();
    for word in [
        "[[link]]",
        "[[transfer]]",
        "[[datagrams]]",
        "at = \"router\"",
        "\"red\"",
        "\"rem\"",
        "ecn = true",
        "one_way_delay",
    ] {
        let with = texts.iter().filter(|text| text.contains(word)).count();
        assert!((5..395).contains(&with), "{word}: {with}");
    }
}
