//! Random scenarios: each seed turns some things off entirely and skews the rest.

use flashweir_core::Rng;
use std::fmt::Write as _;

/// The text of the scenario of one seed: a crowd of a minute or less, with any of the faults. The same seed
/// is the same text.
///
/// It goes the way of every file, so that a failure can be kept and looked at like any other scenario.
///
/// ```
/// use flashweir_lab::scenario::{Scenario, Settings, swarm_text};
/// let scenario = Scenario::from_toml(&swarm_text(7), "swarm.toml", &Settings::default())?;
/// assert!(scenario.length().as_secs() <= 60);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn swarm_text(seed: u64) -> String {
    let mut dice = Dice(Rng::new(seed).fork(SWARM));
    let length_s = dice.between(5, 60);
    let bin_ms = dice.between(100, 3_000);
    let mut text = format!(
        "title = \"swarm {seed}\"\nduration = \"{length_s}s\"\nseed = {seed}\nseeds = 1\nbin = \"{bin_ms}ms\"\n"
    );
    let (quiet, crowd, at) = (dice.between(1, 150), dice.between(1, 900), dice.between(1, length_s - 1));
    let shape = match dice.between(0, 3) {
        0 => String::new(),
        1 => format!("step = \"{crowd}@{at}s\"\n"),
        2 => format!("ramp = \"{crowd}@{at}s\"\n"),
        _ => format!("spike = \"{}@{at}s\"\nhalf_life = \"{}ms\"\n", quiet + crowd, dice.between(200, 5_000)),
    };
    let spread = dice.one_of(&["poisson", "constant", "self_similar"]);
    push(&mut text, format_args!("[workload]\nrate = {quiet}\n{shape}arrivals = \"{spread}\"\n"));
    let has_packets = dice.one_in(3);
    for number in 0..dice.between(1, 3) {
        dice.class(&mut text, number);
        if has_packets && (number == 0 || dice.one_in(2)) {
            dice.clients(&mut text);
        }
    }
    if has_packets {
        dice.links(&mut text);
        dice.other_senders(&mut text, length_s);
    } else if dice.one_in(2) {
        push(&mut text, format_args!("[network]\none_way_delay = \"{}ms\"\n", dice.between(0, 200)));
    }
    dice.server(&mut text);
    if has_packets && dice.one_in(2) {
        dice.router(&mut text);
    } else {
        dice.controller(&mut text);
    }
    for _ in 0..dice.between(0, 4) {
        dice.fault(&mut text, length_s);
    }
    text
}

/// Names the fork that swarms are drawn from: "swrm" in ASCII.
const SWARM: u64 = 0x7377_726D << 32;

struct Dice(Rng);

impl Dice {
    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.0.below(to - from + 1)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.0.below(count) == 0
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.0.below(words.len() as u64) as usize]
    }

    fn class(&mut self, text: &mut String, number: u64) {
        let work = match self.between(0, 3) {
            0 => format!("{}ms", self.between(1, 20)),
            1 => format!("exp:{}ms", self.between(1, 20)),
            2 => format!("pareto:1.{}:1ms:2s", self.between(1, 9)),
            _ => format!("two-point:1ms:{}ms:0.{}", self.between(2, 200), self.between(0, 9)),
        };
        push(text, format_args!("[[class]]\nname = \"c{number}\"\nwork = \"{work}\"\n"));
        push(text, format_args!("weight = {}\nhost = {}\n", self.between(1, 9), self.between(0, 1)));
        let lines = [
            format!("documents = {}\nzipf = 0.8\n", self.between(1, 500)),
            format!("patience = \"exp:{}ms\"\n", self.between(50, 8_000)),
            format!("timeout = \"{}ms\"\n", self.between(20, 5_000)),
            format!(
                "session = \"geometric:{}\"\nthink = \"exp:{}ms\"\n",
                self.between(1, 5),
                self.between(0, 2_000) + 1
            ),
            format!(
                "retry = \"{}\"\nretry_share = 0.{}\ntries = {}\nretry_on = \"{}\"\n",
                self.one_of(&["at-once", "fixed:500ms", "backoff:100ms-5s", "retry-after:1s"]),
                self.between(1, 9),
                self.between(1, 6),
                self.one_of(&["refusal,timeout", "refusal,timeout,error", "timeout", "error"])
            ),
            "goes_on_unserved = true\n".to_owned(),
        ];
        for line in lines {
            if self.one_in(2) {
                text.push_str(&line);
            }
        }
        self.policy(text, number);
    }

    /// The sentry's settings for a class; some have the same revenue.
    fn policy(&mut self, text: &mut String, number: u64) {
        if number > 0 && self.one_in(4) {
            text.push_str("policy_class = \"c0\"\n");
            return;
        }
        let lines = [
            format!("revenue = {}\n", self.between(1, 3)),
            format!("guaranteed_rate = {}\n", self.between(1, 50)),
            format!("response_target = \"{}ms\"\n", self.between(100, 3_000)),
            format!("queue = {}\n", self.between(0, 200)),
        ];
        for line in lines {
            if self.one_in(3) {
                text.push_str(&line);
            }
        }
    }

    fn clients(&mut self, text: &mut String) {
        let (at, count) = (self.one_of(&["west", "east"]), self.between(1, 20));
        let (kbps, factor) = (self.between(20, 5_000), self.between(1, 10));
        let delay_ms = self.between(1, 100);
        push(
            text,
            format_args!(
                "server = \"hub\"\nclients = {{ at = \"{at}\", count = {count}, rate = \"{kbps}kb/s-{}kb/s\", \
                 delay = \"{delay_ms}ms-{}ms\" }}\n",
                kbps * factor,
                delay_ms * factor
            ),
        );
    }

    /// Two links to the servers, from the west and from the east.
    fn links(&mut self, text: &mut String) {
        for side in ["west", "east"] {
            let (kbps, delay_ms, packets) =
                (self.between(200, 20_000), self.between(0, 50), self.between(0, 100));
            push(
                text,
                format_args!(
                    "[[link]]\nname = \"{side}\"\nbetween = [\"{side}\", \"hub\"]\nrate = \"{kbps}kb/s\"\n\
                     delay = \"{delay_ms}ms\"\nbuffer = \"{packets} packets\"\n"
                ),
            );
            if self.one_in(3) {
                push(text, format_args!("loss = 0.{:02}\n", self.between(0, 20)));
            }
            let discipline = self.one_of(&["drop_tail", "drop_tail", "red", "rem"]);
            push(text, format_args!("discipline = \"{discipline}\"\n"));
            if discipline != "drop_tail" && self.one_in(2) {
                text.push_str("ecn = true\n");
            }
        }
        if self.one_in(2) {
            text.push_str("[network]\ntcp = \"2003\"\n");
        }
    }

    fn other_senders(&mut self, text: &mut String, length_s: u64) {
        if self.one_in(2) {
            let starts_s = self.between(0, length_s - 1);
            push(
                text,
                format_args!(
                    "[[transfer]]\nname = \"bulk\"\nfrom = \"hub\"\nto = \"west\"\nstarts = \"{starts_s}s\"\n"
                ),
            );
            if self.one_in(2) {
                push(text, format_args!("bytes = \"{}kB\"\n", self.between(1, 5_000)));
            }
        }
        if self.one_in(2) {
            let (kbps, bytes) = (self.between(10, 5_000), self.between(40, 1_500));
            push(
                text,
                format_args!(
                    "[[datagrams]]\nname = \"steady\"\nfrom = \"east\"\nto = \"west\"\nrate = \"{kbps}kb/s\"\n\
                     packet_bytes = {bytes}\n"
                ),
            );
        }
    }

    /// At a link over which some class comes.
    fn router(&mut self, text: &mut String) {
        let link = if text.contains("clients = { at = \"west\"") { "west" } else { "east" };
        let mode = self.one_of(&["none", "static", "repaired", "repaired", "paper", "scoreboard"]);
        let (rate, interval_s) = (self.between(1, 400), self.between(1, 5));
        push(
            text,
            format_args!(
                "[controller]\nat = \"router\"\nlink = \"{link}\"\nmode = \"{mode}\"\nrate = {rate}\n\
                 interval = \"{interval_s}s\"\n"
            ),
        );
    }

    fn server(&mut self, text: &mut String) {
        let kind = self.one_of(&["first_come", "shared"]);
        push(text, format_args!("[server]\nkind = \"{kind}\"\nprocessors = {}\n", self.between(1, 4)));
        if self.one_in(2) {
            push(text, format_args!("workers = {}\nqueue = {}\n", self.between(1, 50), self.between(0, 300)));
        }
        if self.one_in(2) {
            push(text, format_args!("overflow = \"refuse\"\nrefusal_cost = \"{}ms\"\n", self.between(0, 5)));
        }
        let departed = self.one_of(&["stops", "works_on"]);
        push(text, format_args!("departed = \"{departed}\"\n"));
        if self.one_in(3) {
            let (base, request) = (self.between(1, 120), self.between(1, 2_000));
            push(
                text,
                format_args!(
                    "[server.memory]\nmemory_mib = 100\nbase_mib = {base}\nrequest_kib = {request}\npenalty = 5.0\n"
                ),
            );
        }
    }

    fn controller(&mut self, text: &mut String) {
        let modes =
            ["none", "static", "repaired", "repaired", "paper", "scoreboard", "sentry", "sentry", "sentry"];
        let mode = self.one_of(&modes);
        push(text, format_args!("[controller]\nmode = \"{mode}\"\nrate = {}\n", self.between(1, 400)));
        let lines = [
            format!("gates = {}\n", self.between(1, 4)),
            format!("target = \"{}ms\"\n", self.between(100, 2_000)),
            format!(
                "policing = \"{}\"\n",
                self.one_of(&["reservation", "reservation", "batch", "threshold", "auto"])
            ),
            format!(
                "ladder = [{{ below = {}, response_target = \"1s\" }}, {{ response_target = \"2s\" }}]\n",
                self.between(10, 500)
            ),
            "shadow = true\n".to_owned(),
            "hot_spots = false\n".to_owned(),
            format!("max_requests_in_flight = {}\n", self.between(0, 300)),
            format!("first_tick = \"{}ms\"\n", self.between(0, 1_000)),
            format!("interval = \"{}ms\"\n", self.between(10, 3_000)),
        ];
        for line in lines {
            if self.one_in(3) {
                text.push_str(&line);
            }
        }
    }

    fn fault(&mut self, text: &mut String, length_s: u64) {
        let from_ms = self.between(0, length_s * 1_000);
        let to_ms = from_ms + self.between(1, 4_000);
        let kind = match self.between(0, 3) {
            0 => "kind = \"crash\"".to_owned(),
            1 => format!("kind = \"slow\"\nfactor = {}.0", self.between(1, 20)),
            2 => "kind = \"link_cut\"".to_owned(),
            _ => format!("kind = \"lost_feedback\"\nshare = 0.{}", self.between(0, 9)),
        };
        push(text, format_args!("[[fault]]\n{kind}\nduring = \"{from_ms}ms-{to_ms}ms\"\n"));
    }
}

fn push(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(what);
}
