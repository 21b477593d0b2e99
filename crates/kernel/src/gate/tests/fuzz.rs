//! Random frames: valid ones of every kind, changed a little, so that most get deep into the program.
//!
//! For every frame the program ends, returns what another reader of frames
//! (`flashweir_testkit::packet::glance`) and the rules below expect, touches only its own memory, and sends
//! only segments that are right to the last bit.

use std::hash::Hasher as _;
use std::net::IpAddr;

use flashweir_core::Rng;
use flashweir_testkit::number_from_environment;
use flashweir_testkit::packet::{ETHERNET_BYTES, MSS_OPTION, UnverifiedSegment, flag, glance};
use siphasher::sip::SipHasher13;

use super::differential::rank_of;
use super::*;

/// Frames of a run in the gate, of which nothing must be lost for want of time.
const FRAMES: u64 = 20_000;
/// Longest frame; the kernel takes 3,500 bytes in a test run.
const FRAME_BYTES: usize = 2_000;

#[test]
fn random_frames_are_judged_as_the_rules_say() {
    let Some(mut fuzz) = Fuzz::require("random frames") else { return };
    fuzz.run(1, FRAMES);
    // Enough of everything for the comparison to mean something.
    let counts = fuzz.counts;
    let seen = [counts.dropped, counts.reset, counts.answered, counts.responses, counts.late_resets];
    assert!(seen.into_iter().chain([counts.absorbed, fuzz.passed]).all(|count| count > 100), "{counts:?}");
    assert!([0, 1, 2, 3, 5].into_iter().all(|rank| counts.tiers[rank].offered > 100), "{counts:?}");
}

/// `make fuzz-kernel SECONDS=60 SEED=1`: as long as one likes, each thousand frames by a seed of their own.
#[test]
#[ignore = "as long as one likes: make fuzz-kernel"]
fn random_frames_for_as_long_as_one_likes() {
    let until = std::time::Instant::now() + Duration::from_secs(number_from_environment("SECONDS", 60));
    let Some(mut fuzz) = Fuzz::require("random frames, long") else { return };
    let first = number_from_environment("SEED", 1);
    let mut seed = first;
    while std::time::Instant::now() < until {
        fuzz.run(seed, 1_000);
        seed += 1;
    }
    println!("seeds {first} to {}: {} passed, {:?}", seed - 1, fuzz.passed, fuzz.counts);
}

/// A gate, and what it should have counted.
struct Fuzz {
    gate: KernelGate,
    ranks: Ranks,
    refusal: ExcessTreatment,
    counts: GateCounts,
    passed: u64,
    /// Lengths of the response, of its head.
    answer_bytes: [u32; 2],
}

/// Fate of a frame.
#[derive(Debug)]
enum Fate {
    Passes,
    Dropped,
    /// A segment with these numbers, flags and payload goes back.
    Answered {
        sequence: u32,
        acknowledgement: u32,
        flags: u8,
        payload_bytes: u32,
    },
}

impl Fuzz {
    fn require(test: &str) -> Option<Self> {
        let mut gate = require_closed(test, ExcessTreatment::Answer)?;
        // From now on, and time stands still, the service is one that answered of late.
        gate.reply(&syn());
        gate.control.attempts_key = [1, 2];
        gate.write_control().expect("a key");
        let ranks = ranks();
        gate.rank(ranks.clone()).expect("ranks");
        let counts = GateCounts { unique_offered: 0, ..gate.counts() };
        let answer = Page::default().answers(Duration::from_secs(10), Reason::FlashCrowd).remove(0);
        let answer_bytes = [answer.whole_bytes, answer.head_bytes].map(u32::from);
        Some(Self { gate, ranks, refusal: ExcessTreatment::Answer, counts, passed: 0, answer_bytes })
    }

    fn run(&mut self, seed: u64, frames: u64) {
        let mut rng = Rng::new(seed);
        for number in 0..frames {
            if number % 500 == 0 {
                self.refusal = [ExcessTreatment::Answer, ExcessTreatment::Reset, ExcessTreatment::Drop]
                    [rng.below(3) as usize];
                // Some of no tokens at all, and of any number of tiers.
                let nothing = [Ceiling { rate: Rate::ZERO, burst: 1 }; TIERS];
                let tiers = Tiers::new(&nothing[..=rng.below(TIERS as u64) as usize]).expect("room");
                self.gate.apply(&[ServicePlan { tiers, ..closed(self.refusal) }]).expect("a plan");
            }
            let frame = self.random_frame(&mut rng);
            self.check(&frame, &format!("seed {seed}, frame {number}, {:?}", self.refusal));
        }
        let passed = self.gate.passed().expect("counters").iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!(passed, self.passed, "seed {seed}");
        assert_eq!(GateCounts { unique_offered: 0, ..self.gate.counts() }, self.counts, "seed {seed}");
    }

    fn check(&mut self, frame: &[u8], what: &str) {
        let fate = self.fate(frame);
        let run = self.gate.try_frame(frame, 1).expect("a run");
        let what = || format!("{what}: {fate:?} expected of {frame:02x?}, which became {:02x?}", run.packet);
        match fate {
            Fate::Passes => assert!(run.verdict == PASS && run.packet == frame, "{}", what()),
            Fate::Dropped => assert_eq!(run.verdict, DROP, "{}", what()),
            Fate::Answered { sequence, acknowledgement, flags, payload_bytes } => {
                assert_eq!(run.verdict, SEND_BACK, "{}", what());
                let reply = Segment::read(&run.packet).unwrap_or_else(|wrong| panic!("{wrong}; {}", what()));
                let seen = glance(frame).expect("what is answered was understood");
                assert_eq!((reply.source, reply.destination), (seen.destination, seen.source), "{}", what());
                assert_eq!([&frame[6..12], &frame[..6]], reply.stations, "{}", what());
                assert_eq!(reply.flags, flags, "{}", what());
                assert_eq!(
                    (reply.sequence, reply.acknowledgement),
                    (sequence, acknowledgement),
                    "{}",
                    what()
                );
                assert_eq!(reply.payload.len() as u32, payload_bytes, "{}", what());
                assert!(payload_bytes == 0 || reply.payload.starts_with(b"HTTP/1.1 503 "), "{}", what());
            }
        }
    }

    /// Expected fate of a frame; counts it.
    fn fate(&mut self, frame: &[u8]) -> Fate {
        let Some(seen) = glance(frame).filter(|seen| is_protected(seen.destination)) else {
            self.passed += 1;
            return Fate::Passes;
        };
        if seen.flags & (flag::SYN | flag::ACK | flag::RST) == flag::SYN {
            return self.fate_of_opening(&seen);
        }
        let fate = if seen.flags & (flag::SYN | flag::ACK) == flag::ACK {
            self.fate_of_answered(frame, &seen)
        } else {
            None
        };
        fate.unwrap_or_else(|| {
            self.passed += 1;
            Fate::Passes
        })
    }

    fn fate_of_opening(&mut self, seen: &UnverifiedSegment) -> Fate {
        self.counts.offered += 1;
        let rank = rank_of(&self.ranks, seen.source.ip(), seen.destination.port(), seen.traffic_class);
        self.counts.tiers[rank].offered += 1;
        match self.refusal {
            ExcessTreatment::Answer => {
                self.counts.answered += 1;
                let sequence = self.number_for(seen.source, seen.destination, self.gate.control.key_index);
                let acknowledgement = seen.sequence.wrapping_add(1);
                Fate::Answered { sequence, acknowledgement, flags: flag::SYN | flag::ACK, payload_bytes: 0 }
            }
            ExcessTreatment::Reset => {
                self.counts.reset += 1;
                let acknowledgement = after(seen).wrapping_add(1);
                Fate::Answered {
                    sequence: 0,
                    acknowledgement,
                    flags: flag::RST | flag::ACK,
                    payload_bytes: 0,
                }
            }
            ExcessTreatment::Drop | ExcessTreatment::Pass => {
                self.counts.dropped += 1;
                Fate::Dropped
            }
        }
    }

    /// `None` if the connection was not answered here.
    fn fate_of_answered(&mut self, frame: &[u8], seen: &UnverifiedSegment) -> Option<Fate> {
        let opened = seen.acknowledgement.wrapping_sub(1);
        let beyond = opened.wrapping_sub(self.number_for(seen.source, seen.destination, opened & 1));
        let is_open = beyond == 0;
        if !is_open && !self.answer_bytes.iter().any(|bytes| beyond == bytes + 1) {
            return None;
        }
        let payload = &frame[seen.payload.clone()];
        let ends = seen.flags & flag::FIN != 0;
        let reset = Fate::Answered {
            sequence: seen.acknowledgement,
            acknowledgement: 0,
            flags: flag::RST,
            payload_bytes: 0,
        };
        let answer = |flags, payload_bytes| Fate::Answered {
            sequence: seen.acknowledgement,
            acknowledgement: after(seen),
            flags,
            payload_bytes,
        };
        let is_foreign = payload.first() == Some(&0x16) || payload.starts_with(b"PRI ");
        if seen.flags & flag::RST != 0 || payload.is_empty() && !ends {
            self.counts.absorbed += 1;
            Some(Fate::Dropped)
        } else if is_open && !payload.is_empty() && !is_foreign {
            self.counts.responses += 1;
            let bytes = self.answer_bytes[usize::from(payload.starts_with(b"HEAD"))];
            Some(answer(flag::ACK | flag::FIN | flag::PSH, bytes))
        } else if is_open || !payload.is_empty() {
            self.counts.late_resets += 1;
            Some(reset)
        } else {
            self.counts.absorbed += 1;
            Some(answer(flag::ACK, 0))
        }
    }

    /// The sequence number with which the gate answers a connection (`bpf/answer.h`), by an independent
    /// SipHash.
    fn number_for(&self, source: SocketAddr, destination: SocketAddr, key: u32) -> u32 {
        let [first, second] = self.gate.control.answer_keys[key as usize];
        let mut hasher = SipHasher13::new_with_keys(first, second);
        for address in [source.ip(), destination.ip()] {
            hasher.write(&match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            });
        }
        hasher.write(&source.port().to_be_bytes());
        hasher.write(&destination.port().to_be_bytes());
        hasher.write(&0u32.to_le_bytes());
        hasher.finish() as u32 & !1 | key
    }

    fn random_frame(&self, rng: &mut Rng) -> Vec<u8> {
        let mut frame = self.random_segment(rng).frame();
        for _ in 0..rng.below(4) {
            damage(rng, &mut frame);
        }
        if rng.below(8) == 0 {
            // Of two frames, the beginning of one and the end of another.
            let other = self.random_segment(rng).frame();
            let at = rng.below(frame.len().min(other.len()) as u64) as usize;
            frame.truncate(at);
            frame.extend(&other[at..]);
        }
        frame.resize(frame.len().clamp(ETHERNET_BYTES, FRAME_BYTES), 0);
        frame
    }

    /// A segment as clients send them in the life of a connection, with any headers, and sometimes a forged
    /// number.
    fn random_segment(&self, rng: &mut Rng) -> Segment {
        let pick = |rng: &mut Rng, count: u64| rng.below(count) as usize;
        let mut segment = if rng.below(2) == 0 { syn() } else { syn_v6() };
        if segment.source.is_ipv4() {
            segment.source = client(rng.below(512) as u16);
        }
        segment.traffic_class = [0, 46 << 2, 10 << 2 | 1, rng.below(256) as u8][pick(rng, 4)];
        segment.source.set_port(40_000 + rng.below(1_000) as u16);
        segment.sequence = rng.next_u64() as u32;
        segment.vlan_tags = [vec![], vec![], vec![1], vec![1, 2], vec![1, 2, 3]][pick(rng, 5)].clone();
        segment.ip_options = vec![7; [0, 0, 4, 40][pick(rng, 4)]];
        segment.tcp_options = [MSS_OPTION.to_vec(), vec![], vec![9; 40], vec![0; 4]][pick(rng, 4)].clone();
        let header = |kind: u8| (kind, vec![0; 7]);
        let headers =
            [vec![], vec![], vec![header(0)], vec![header(60), header(44), header(43)], vec![header(60); 6]];
        segment.extension_headers = headers[pick(rng, 5)].clone();
        if rng.below(3) == 0 {
            return segment.carrying([&b""[..], b"early"][pick(rng, 2)]);
        }
        let number = self.number_for(segment.source, segment.destination, rng.below(2) as u32);
        let [whole, head] = self.answer_bytes;
        let acknowledged =
            [1, 1, whole + 2, head + 2, 0, whole + 1, whole + 3, rng.next_u64() as u32][pick(rng, 8)];
        segment.acknowledgement = number.wrapping_add(acknowledged);
        let flags = [0, 0, flag::FIN, flag::RST, flag::PSH, flag::SYN, rng.below(256) as u8][pick(rng, 7)];
        segment.flags = if rng.below(10) == 0 { flags } else { flags | flag::ACK };
        let says: [&[u8]; 8] =
            [b"", b"", b"GET / HTTP/1.1\r\n", b"HEAD / ", b"G", b"PRI * HTTP/2.0", b"\x16\x03\x01", b"POST"];
        let mut payload = says[pick(rng, 8)].to_vec();
        if rng.below(4) == 0 {
            payload.resize(payload.len() + rng.below(1_400) as usize, b'x');
        }
        segment.payload = payload;
        segment
    }
}

/// Every way to a rank.
fn ranks() -> Ranks {
    let network = |text: &str, bits, rank| (text.parse().expect("an address"), bits, rank);
    let networks = vec![
        network("198.51.0.0", 24, 3),
        network("198.51.0.128", 25, 0),
        network("2001:db8:1::8000", 113, 4),
        // Not of IPv4, although those are its bits.
        network("::", 64, 7),
    ];
    Ranks { networks, marks: vec![(46, 1), (10, 2)], ports: vec![(80, 5)], default_rank: 6 }
}

fn is_protected(destination: SocketAddr) -> bool {
    [SERVER, SERVER_V6].map(address).contains(&destination)
}

/// The number after a segment's payload and end.
fn after(seen: &UnverifiedSegment) -> u32 {
    seen.sequence.wrapping_add(seen.payload.len() as u32).wrapping_add(u32::from(seen.flags & flag::FIN != 0))
}

/// Changes a frame as chance, or malice, would.
fn damage(rng: &mut Rng, frame: &mut Vec<u8>) {
    frame.resize(frame.len().max(ETHERNET_BYTES), 0);
    let at = rng.below(frame.len() as u64) as usize;
    match rng.below(8) {
        0 => frame[at] = rng.below(256) as u8,
        1 => frame[at] = [0, 1, 6, 44, 51, 60, 0x45, 0x4f, 0x60, 0x7f, 0x80, 0xff][rng.below(12) as usize],
        2 => frame[at] ^= 1 << rng.below(8),
        // The fields that matter are at even places: a length or a number a little off.
        3 => {
            let low = (at | 1).min(frame.len() - 1);
            frame[low] = frame[low].wrapping_add(rng.below(9) as u8).wrapping_sub(4);
        }
        4 => frame.truncate(at.max(ETHERNET_BYTES)),
        5 => frame.extend(std::iter::repeat_n(rng.below(256) as u8, rng.below(64) as usize)),
        6 => drop(frame.drain(at..(at + 1 + rng.below(8) as usize).min(frame.len()))),
        _ => {
            let copied: Vec<u8> = frame[at..].iter().copied().take(1 + rng.below(16) as usize).collect();
            frame.splice(at..at, copied);
        }
    }
}
