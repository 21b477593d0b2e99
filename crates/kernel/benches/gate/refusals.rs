//! Processor time of the server's side for each refused new connection, softirq included.
//!
//! Counted is the time of the thread that receives before the server, and of nginx: taking packets in,
//! judging them, sending replies into the pair of interfaces; no part of the client's stack. nginx and the
//! gate get the same load from the same clients in the same setting. Sending a packet wakes the thread that
//! receives it, if that sleeps, and what waking costs is the sender's; where that processor has halted it is
//! a call to the hypervisor, which costs more than all the rest. So there are settings in which idle
//! processors wait awake, and in which interfaces moderate their wakes as network cards do; and rows whose
//! packets come faster than one thread of clients can ask, which keep the server busy.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use flashweir_core::kernel_counts::GateCounts;
use flashweir_kernel::gate::{ExcessTreatment, Hook};
use flashweir_testkit::{Testbed, require_program};

use crate::arena::{Awake, CLIENT, Receiving, SERVER, join_received, spent_ns};
use crate::carried::Carrier;
use crate::clients::Clients;
use crate::raw;
use crate::refuser::Refuser;
use crate::servers::Server;

const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(2);
/// As fast as they are answered, and as fast as nginx can be asked to without being busy all the time.
const LOADS: [(&str, Clients); 2] = [
    ("256 clients, as fast as they can", Clients { count: 256, rate_per_s: None }),
    ("256 clients, 5,000 a second", Clients { count: 256, rate_per_s: Some(5_000) }),
];

/// Behaviour of idle processors, and how often interfaces wake them.
#[derive(Clone, Copy)]
struct Setting {
    name: &'static str,
    awake: bool,
    wake_every: Duration,
}

const SETTINGS: [Setting; 3] = [
    Setting { name: "idle processors halt, each packet wakes", awake: false, wake_every: Duration::ZERO },
    Setting { name: "idle processors wait awake", awake: true, wake_every: Duration::ZERO },
    Setting {
        name: "idle processors wait awake, wakes every 1 ms",
        awake: true,
        wake_every: Duration::from_millis(1),
    },
];
const HOOKS: [(&str, Hook); 2] = [("in the driver", Hook::Native), ("at the stack's door", Hook::Generic)];
/// Packets sent past the clients' stack, the refusal they stand for, and the factor by which nginx is to cost
/// more.
const FLOODS: [(&str, ExcessTreatment, f64); 3] = [
    ("answer, four packets each", ExcessTreatment::Answer, ANSWER_BAR),
    ("reset", ExcessTreatment::Reset, SILENT_BAR),
    ("drop", ExcessTreatment::Drop, SILENT_BAR),
];
const ANSWER_BAR: f64 = 10.0;
const SILENT_BAR: f64 = 40.0;

/// Names the program of the gateway, where it has been built.
const GATEWAY: &str = "FLASHWEIR";

/// Between two packets that find the thread asleep.
const ALONE: Duration = Duration::from_micros(200);

/// With real clients.
pub(crate) fn measure() {
    println!(
        "Processor time of the server's side for each refused new connection, us (median of {ROUNDS} rounds of \
         {ROUND:?}; refusals a second in brackets). Counted: the server's receiving thread, softirq included, and nginx; \
         not the clients' stack"
    );
    let test = "costs of refusals";
    let Some(mut testbed) = Testbed::require(test, &[CLIENT, SERVER]) else { return };
    let Some(nginx) = require_program("nginx", test) else { return };
    let [_, server] = testbed.link(CLIENT, SERVER);
    let server = SocketAddr::from((server, 8_080));
    let nginx = Server::nginx(&testbed, &nginx, server);
    for setting in SETTINGS {
        real_clients(&testbed, &nginx, server, setting);
    }
}

fn real_clients(testbed: &Testbed, nginx: &Server, server: SocketAddr, setting: Setting) {
    let _awake = setting.awake.then(Awake::keep);
    for (load, clients) in LOADS {
        println!("  {load}; {}", setting.name);
        let mut costs = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            costs[0].push(server_refuses(testbed, nginx, server, setting.wake_every, clients));
            for (costs, (_, hook)) in costs[1..].iter_mut().zip(HOOKS) {
                costs.push(gate_answers(testbed, server, hook, setting.wake_every, clients));
            }
        }
        let [by_nginx, by_gate @ ..] = costs.map(median);
        println!("    {by_nginx}  nginx, return 503");
        for (cost, (hook, _)) in by_gate.into_iter().zip(HOOKS) {
            println!("    {cost}  answer {hook}");
            cost.show_beside("nginx", by_nginx.us, ANSWER_BAR);
        }
    }
}

/// With frames that no stack of clients made: they come so fast that the server is busy all the time, as
/// nginx is with real clients that ask as fast as they can.
pub(crate) fn measure_floods() {
    println!(
        "The same with frames sent past the clients' stack, which keep the server busy; idle processors wait awake"
    );
    let test = "costs of refusing floods";
    let Some(mut testbed) = Testbed::require(test, &[CLIENT, SERVER]) else { return };
    let Some(nginx) = require_program("nginx", test) else { return };
    let [_, server] = testbed.link(CLIENT, SERVER);
    let server = SocketAddr::from((server, 8_080));
    let _awake = Awake::keep();
    let by_servers = servers_refuse(&testbed, &nginx, server);
    let testbed = &testbed;
    let show = |cost: Cost, what: &str, bar| {
        println!("    {cost}  {what}");
        by_servers.iter().for_each(|(name, by_server)| cost.show_beside(name, by_server.us, bar));
    };
    for (hook_name, hook) in HOOKS {
        for (name, refusal, bar) in FLOODS {
            let run = |_| gate_refuses_raw(testbed, server, hook, refusal, Duration::ZERO);
            let cost = median((0..ROUNDS).map(run).collect());
            show(cost, &format!("{name}, in socket buffers, {hook_name}"), bar);
        }
    }
    for (name, refusal, bar) in FLOODS {
        let cost = median((0..ROUNDS).map(|_| gate_refuses_carried(testbed, server, refusal)).collect());
        show(cost, &format!("{name}, in pages as from a network card, in the driver"), bar);
    }
    let alone = |_| gate_refuses_raw(testbed, server, Hook::Native, ExcessTreatment::Drop, ALONE);
    let cost = median((0..ROUNDS).map(alone).collect());
    println!("    {cost}  drop in the driver, one every {ALONE:?}: the difference is what waking costs");
}

/// Cost of the servers, one after the other, each busy with real clients all the time.
fn servers_refuse(testbed: &Testbed, nginx: &Path, server: SocketAddr) -> Vec<(&'static str, Cost)> {
    let (load, clients) = LOADS[0];
    // Moderated wakes let them take in many packets at a time, which is cheapest, and so the hardest to beat.
    let wake_every = SETTINGS[2].wake_every;
    let measured = |name, refusing: &Server| {
        let run = |_| server_refuses(testbed, refusing, server, wake_every, clients);
        let cost = median((0..ROUNDS).map(run).collect());
        println!("    {cost}  {name}, 503 to {load}, wakes every {wake_every:?}");
        (name, cost)
    };
    let mut costs = vec![measured("nginx", &Server::nginx(testbed, nginx, server))];
    match std::env::var_os(GATEWAY).filter(|program| !program.is_empty()) {
        Some(program) => {
            costs.push(measured("the gateway", &Server::gateway(testbed, Path::new(&program), server)));
        }
        None => println!("    skipped: the gateway's own refusals, whose program {GATEWAY} would name"),
    }
    costs
}

/// Cost of a refusal, and the refusals per second.
#[derive(Clone, Copy)]
struct Cost {
    us: f64,
    per_s: f64,
}

impl Cost {
    fn of(spent_ns: u64, refused: u64) -> Self {
        Self { us: spent_ns as f64 / 1e3 / refused as f64, per_s: refused as f64 / ROUND.as_secs_f64() }
    }

    /// Beside what a server needs for the same.
    fn show_beside(self, server: &str, server_us: f64, bar: f64) {
        let times = server_us / self.us;
        let verdict = if times >= bar { "met" } else { "MISSED" };
        println!("{:22}{server} has {times:.1} times that; at least {bar}: {verdict}", "");
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

fn server_refuses(
    testbed: &Testbed,
    refusing: &Server,
    server: SocketAddr,
    wake_every: Duration,
    clients: Clients,
) -> Cost {
    join_received(testbed, true);
    let receiving = Receiving::start(testbed, wake_every);
    let process = refusing.process.id();
    let before_ns = spent_ns(process) + receiving.spent_ns();
    let outcomes = testbed.inside(CLIENT, || clients.ask(server, ROUND, u64::MAX));
    let spent_ns = spent_ns(process) + receiving.spent_ns() - before_ns;
    drop(receiving);
    join_received(testbed, false);
    if outcomes.answered() < outcomes.sum() {
        println!("    not all clients were answered: {outcomes:?}");
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
    let refuser = Refuser::new(testbed, server, ExcessTreatment::Answer, hook);
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
    refusal: ExcessTreatment,
    pause: Duration,
) -> Cost {
    let Refuser { gate, .. } = &Refuser::new(testbed, server, refusal, hook);
    let frames =
        if refusal == ExcessTreatment::Answer { raw::exchanges(gate, server) } else { raw::openings(server) };
    let receiving = Receiving::start(testbed, Duration::ZERO);
    let (before, before_ns) = (gate.counters().expect("counters")[0], receiving.spent_ns());
    testbed.inside(CLIENT, || raw::flood(&frames, ROUND, pause));
    let (after, spent_ns) = (gate.counters().expect("counters")[0], receiving.spent_ns() - before_ns);
    Cost::of(spent_ns, refused_between(before, after, refusal))
}

fn gate_refuses_carried(testbed: &Testbed, server: SocketAddr, refusal: ExcessTreatment) -> Cost {
    let mut refuser = Refuser::new(testbed, server, refusal, Hook::Native);
    let frames = match refusal {
        ExcessTreatment::Answer => raw::exchanges(&refuser.gate, server),
        _ => (0..4).flat_map(|_| raw::openings(server)).collect(),
    };
    let carrier = testbed.inside(CLIENT, || Carrier::new(SERVER, &frames));
    refuser.end_replies(&carrier);
    let receiving = Receiving::start(testbed, Duration::ZERO);
    let gate = &refuser.gate;
    let (before, before_ns) = (gate.counters().expect("counters")[0], receiving.spent_ns());
    testbed.inside(CLIENT, || carrier.send(ROUND));
    let (after, spent_ns) = (gate.counters().expect("counters")[0], receiving.spent_ns() - before_ns);
    Cost::of(spent_ns, refused_between(before, after, refusal))
}

/// Refusals, by the packets counted: a full queue loses some of each kind.
fn refused_between(before: GateCounts, after: GateCounts, refusal: ExcessTreatment) -> u64 {
    assert_eq!((after.admitted, after.unsent, after.late_resets), (0, 0, 0), "{after:?}");
    let packets = [before, after].map(|counts| counts.offered + counts.responses + counts.absorbed);
    let packets_each = if refusal == ExcessTreatment::Answer { 4 } else { 1 };
    (packets[1] - packets[0]) / packets_each
}
