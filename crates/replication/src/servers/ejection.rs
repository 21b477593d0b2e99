//! Leaving out a server that cannot be reached, is sick, resets requests or fails where others do not.
//!
//! ```text
//! cause        how it is found                                        how it ends
//! unreachable  connections fail (requests, or two probes in a row)    a probe connects
//! sick         probes get a wrong answer or none                      a probe is answered
//! reset        requests are reset, of more than one client            its time is over, or a probe is answered
//! outlier      it fails or is silent while the other servers answer   its time is over
//! ```
//!
//! *Unreachable* and *sick* are facts, found again a few times a second, so any number of servers may be out
//! for them. *Reset* and *outlier* are judgements: at most [`EjectionSettings::part_max`] of the servers are
//! out for them, and never the last usable one. They last [`EjectionSettings::first`], doubled for each
//! further one, because nothing but requests can show that they are over.
//!
//! *Flapping.* Every ejection within [`FORGIVEN_AFTER`] of the last return makes the next return harder:
//! probes must pass without a break for [`HOLD_FIRST`], doubled each time. The first return waits for
//! nothing, so a server that was restarted is used with its first passed probe. Where no other server is
//! usable, nothing is waited for either.
//!
//! After a return the first failure ejects again (a trial), unless it is of the client whose request failed
//! last.
//!
//! Resets that follow requests of one client count once a second: for any requests of that client, another
//! one's failures are needed, or a second for each, to show that the fault is the server's.
//!
//! Cost: a few comparisons for each call; 100 bytes a server.

use crate::SettingsError;
use flashweir_core::{Duration, Instant};

/// Further failures of one client's requests within this time say nothing new: a client of a server that
/// resets everything causes some a second, too.
const SAME_CLIENT_INTERVAL: Duration = Duration::from_secs(1);
/// Ejections are counted together until a server has been in service for this long.
pub const FORGIVEN_AFTER: Duration = Duration::from_secs(60);
/// Time for which probes must pass before the second return in a row; longer than the up-time of a server
/// that restarts several times a second.
pub const HOLD_FIRST: Duration = Duration::from_millis(500);
/// Failed connections of probes in a row that make a server unreachable: a single one may be a full backlog
/// or a lost packet.
const FAILED_CONNECTS_MAX: u32 = 2;
/// Keeps shifts in range.
const DOUBLINGS_MAX: u32 = 16;

/// Settings of ejection: its conditions and its length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EjectionSettings {
    /// Failures in a row that eject; 1 or more, default 5. Lower: one burst of errors costs a server.
    pub failures: u32,
    /// Wrong answers to probes in a row that eject; 1 or more, default 3. Lower: a busy server counts as
    /// sick.
    pub failed_probes: u32,
    /// Length of the first ejection for resets and outliers, default 10 s; each further one twice as long.
    pub first: Duration,
    /// The longest of those, and the longest time for which probes must pass, default 300 s.
    pub longest: Duration,
    /// The part of all servers that may be out for resets and as outliers, 0 to 1, default 0.5: where most of
    /// them fail, the fault is elsewhere.
    pub part_max: f64,
}

impl Default for EjectionSettings {
    fn default() -> Self {
        Self {
            failures: 5,
            failed_probes: 3,
            first: Duration::from_secs(10),
            longest: Duration::from_secs(300),
            part_max: 0.5,
        }
    }
}

impl EjectionSettings {
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        if self.failures == 0 || self.failed_probes == 0 {
            return Err(SettingsError::new("failures that eject a server", "1 or more"));
        }
        if !(0.0..=1.0).contains(&self.part_max) {
            return Err(SettingsError::new("part of the servers that may be ejected", "0 to 1"));
        }
        Ok(())
    }
}

/// Failure of a request that got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection.
    Unreachable,
    /// The connection ended before an answer began.
    Reset,
}

/// Outcome of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// The server accepted a connection; it was not asked for anything.
    Connected,
    /// The server gave the expected answer.
    Answered,
    /// No connection.
    NoConnection,
    /// A wrong answer, or none in time.
    BadAnswer,
}

/// Cause for which a server is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutCause {
    /// It cannot be connected to.
    Unreachable,
    /// It does not answer probes as expected.
    Sick,
    /// It resets requests.
    Reset,
    /// It fails, or is silent, while the others answer.
    Outlier,
}

impl OutCause {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 4] = [Self::Unreachable, Self::Sick, Self::Reset, Self::Outlier];

    /// Returns whether a share of the servers bounds it.
    #[must_use]
    pub fn is_judgement(self) -> bool {
        matches!(self, Self::Reset | Self::Outlier)
    }

    /// The one spelling used in metrics, logs and `/status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Sick => "sick",
            Self::Reset => "reset",
            Self::Outlier => "outlier",
        }
    }
}

/// Number of servers that are out already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// All servers.
    pub servers: usize,
    /// Other servers that are out by judgement.
    pub judged: usize,
    /// Other servers that are usable.
    pub usable: usize,
}

impl Room {
    /// Returns whether one more server may be left out by judgement.
    #[must_use]
    pub fn allows_judgement(&self, part_max: f64) -> bool {
        self.usable > 0 && (self.judged + 1) as f64 <= part_max * self.servers as f64
    }
}

/// State of a server: left out or not, and the cause.
///
/// A fast error makes a server look idle, and a policy that prefers idle servers sends it everything; this is
/// the guard.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ejection {
    /// Failures of requests in a row.
    failures: u32,
    /// Probes in a row that failed, while in service.
    failed_probes: u32,
    /// Client of the last failure that counted, and when that was.
    last_failed: Option<(u64, Instant)>,
    /// Ejections since the server was last in service for [`FORGIVEN_AFTER`].
    ejections: u32,
    out: Option<Out>,
    returned_at: Instant,
    is_on_trial: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Out {
    cause: OutCause,
    /// Time at which it ends by itself; [`Instant::MAX`] where only a probe can end it.
    until: Instant,
    /// Since when probes have passed without a break.
    passing_since: Option<Instant>,
}

impl Ejection {
    /// A request failed; `client` is whose it was, none where no request had part in it. While left out,
    /// failures change nothing: requests sent before the ejection still end. Returns why the server is left
    /// out from now on.
    pub fn failed(
        &mut self,
        now: Instant,
        failure: Failure,
        client: Option<u64>,
        settings: &EjectionSettings,
        room: Room,
    ) -> Option<OutCause> {
        self.settle(now);
        let before = self.last_failed.filter(|(other, _)| Some(*other) == client);
        let is_repeated = before.is_some_and(|(_, at)| now.saturating_since(at) < SAME_CLIENT_INTERVAL);
        if self.out.is_some() || is_repeated {
            return None;
        }
        self.last_failed = client.map(|client| (client, now));
        self.failures = self.failures.saturating_add(1);
        let is_trial = self.is_on_trial && before.is_none();
        if self.failures < if is_trial { 1 } else { settings.failures } {
            return None;
        }
        match failure {
            Failure::Unreachable => Some(self.eject(now, OutCause::Unreachable, settings)),
            Failure::Reset => self.judge(now, OutCause::Reset, settings, room),
        }
    }

    /// A request was answered. While left out it changes nothing: it was sent before.
    pub fn succeeded(&mut self, now: Instant) {
        self.settle(now);
        if self.out.is_none() {
            (self.failures, self.is_on_trial) = (0, false);
        }
    }

    /// The server failed or was silent where others answered. Returns whether it is left out from now on.
    pub fn found_outlier(&mut self, now: Instant, settings: &EjectionSettings, room: Room) -> bool {
        self.settle(now);
        self.out.is_none() && self.judge(now, OutCause::Outlier, settings, room).is_some()
    }

    /// A probe ended. Returns why the server is left out from now on, if it was not before.
    pub fn probed(
        &mut self,
        now: Instant,
        outcome: ProbeOutcome,
        settings: &EjectionSettings,
        room: Room,
    ) -> Option<OutCause> {
        self.settle(now);
        let has_passed = matches!(outcome, ProbeOutcome::Connected | ProbeOutcome::Answered);
        let Some(out) = &mut self.out else {
            return self.probed_in_service(now, outcome, settings);
        };
        if !has_passed {
            out.passing_since = None;
            if outcome == ProbeOutcome::NoConnection {
                // The earlier cause ended with that process.
                (out.cause, out.until) = (OutCause::Unreachable, Instant::MAX);
            }
            return None;
        }
        let since = *out.passing_since.get_or_insert(now);
        let ends = match out.cause {
            OutCause::Unreachable => true,
            OutCause::Sick | OutCause::Reset => outcome == ProbeOutcome::Answered,
            OutCause::Outlier => false,
        };
        let hold = hold(out.cause, self.ejections, settings);
        if ends && (now.saturating_since(since) >= hold || room.usable == 0) {
            self.come_back(now);
        }
        None
    }

    fn probed_in_service(
        &mut self,
        now: Instant,
        outcome: ProbeOutcome,
        settings: &EjectionSettings,
    ) -> Option<OutCause> {
        self.failed_probes += 1;
        let (cause, needed) = match outcome {
            ProbeOutcome::Connected | ProbeOutcome::Answered => {
                self.failed_probes = 0;
                return None;
            }
            ProbeOutcome::NoConnection => (OutCause::Unreachable, FAILED_CONNECTS_MAX),
            ProbeOutcome::BadAnswer => (OutCause::Sick, settings.failed_probes),
        };
        (self.failed_probes >= needed).then(|| self.eject(now, cause, settings))
    }

    /// Ends what has ended by time.
    pub fn settle(&mut self, now: Instant) {
        if self.out.is_some_and(|out| now >= out.until) {
            self.come_back(now);
        }
    }

    /// Returns whether the server is left out.
    #[must_use]
    pub fn is_ejected(&self, now: Instant) -> bool {
        self.cause(now).is_some()
    }

    /// Cause for which the server is left out; none while it is in service.
    #[must_use]
    pub fn cause(&self, now: Instant) -> Option<OutCause> {
        self.out.filter(|out| now < out.until).map(|out| out.cause)
    }

    /// End of the last ejection; [`Instant::ZERO`] if there was none.
    #[must_use]
    pub fn returned_at(&self) -> Instant {
        self.returned_at
    }

    /// Returns whether an answer would change anything: lets a caller skip [`succeeded`](Self::succeeded).
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.failures > 0 || self.is_on_trial || self.out.is_some()
    }

    /// Returns whether a probe now would tell something that requests do not.
    #[must_use]
    pub fn wants_probe(&self) -> bool {
        self.failures > 0 || self.failed_probes > 0 || self.out.is_some()
    }

    fn judge(
        &mut self,
        now: Instant,
        cause: OutCause,
        settings: &EjectionSettings,
        room: Room,
    ) -> Option<OutCause> {
        room.allows_judgement(settings.part_max).then(|| self.eject(now, cause, settings))
    }

    fn eject(&mut self, now: Instant, cause: OutCause, settings: &EjectionSettings) -> OutCause {
        if now.saturating_since(self.returned_at) >= FORGIVEN_AFTER {
            self.ejections = 0;
        }
        let length = settings.first.saturating_mul(1 << self.ejections.min(DOUBLINGS_MAX));
        let until = if cause.is_judgement() { now + length.min(settings.longest) } else { Instant::MAX };
        self.out = Some(Out { cause, until, passing_since: None });
        self.ejections = self.ejections.saturating_add(1);
        (self.failures, self.failed_probes) = (0, 0);
        cause
    }

    fn come_back(&mut self, now: Instant) {
        self.out = None;
        (self.failures, self.failed_probes, self.is_on_trial, self.returned_at) = (0, 0, true, now);
    }
}

/// Time for which probes must pass: nothing the first time (a server that resets may do so for a moment),
/// then doubling.
fn hold(cause: OutCause, ejections: u32, settings: &EjectionSettings) -> Duration {
    let doublings = match (cause, ejections) {
        (OutCause::Reset, ejections) => ejections.saturating_sub(1),
        (_, 0 | 1) => return Duration::ZERO,
        (_, ejections) => ejections - 2,
    };
    HOLD_FIRST.saturating_mul(1 << doublings.min(DOUBLINGS_MAX)).min(settings.longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: EjectionSettings = EjectionSettings {
        failures: 3,
        failed_probes: 2,
        first: Duration::from_secs(10),
        longest: Duration::from_secs(30),
        part_max: 0.5,
    };
    const ROOM: Room = Room { servers: 4, judged: 0, usable: 3 };

    fn fail(ejection: &mut Ejection, now: Instant, failure: Failure, times: u32) {
        for _ in 0..times {
            ejection.failed(now, failure, None, &SETTINGS, ROOM);
        }
    }

    fn probe(ejection: &mut Ejection, now: Instant, outcome: ProbeOutcome) -> Option<OutCause> {
        ejection.probed(now, outcome, &SETTINGS, ROOM)
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn resets_in_a_row_eject_for_longer_each_time() {
        let mut ejection = Ejection::default();
        fail(&mut ejection, Instant::ZERO, Failure::Reset, 2);
        ejection.succeeded(Instant::ZERO);
        fail(&mut ejection, Instant::ZERO, Failure::Reset, 2);
        assert!(!ejection.is_ejected(Instant::ZERO), "an answer broke the row");
        fail(&mut ejection, Instant::ZERO, Failure::Reset, 1);
        let mut now = Instant::ZERO;
        for expected_s in [10, 20, 30, 30] {
            let end = now + Duration::from_secs(expected_s);
            // Requests sent before the ejection change nothing.
            fail(&mut ejection, now, Failure::Reset, 3);
            ejection.succeeded(now);
            assert!(ejection.is_ejected(end - Duration::from_nanos(1)) && !ejection.is_ejected(end));
            now = end;
            // One failure is enough: the trial failed.
            fail(&mut ejection, now, Failure::Reset, 1);
        }
        now += Duration::from_secs(30);
        ejection.succeeded(now);
        fail(&mut ejection, now, Failure::Reset, 2);
        assert!(!ejection.is_ejected(now), "the trial was passed");
    }

    #[test]
    fn a_judgement_leaves_half_of_the_servers_and_the_last_one() {
        for room in [Room { judged: 2, ..ROOM }, Room { usable: 0, ..ROOM }] {
            let mut ejection = Ejection::default();
            for _ in 0..9 {
                assert_eq!(ejection.failed(at(0), Failure::Reset, None, &SETTINGS, room), None);
                assert!(!ejection.found_outlier(at(0), &SETTINGS, room));
            }
            // An unreachable server is ejected all the same: nothing is lost by that.
            let cause = ejection.failed(at(0), Failure::Unreachable, None, &SETTINGS, room);
            assert_eq!(cause, Some(OutCause::Unreachable));
        }
    }

    #[test]
    fn a_server_that_is_back_is_used_with_its_first_passed_probe() {
        let mut ejection = Ejection::default();
        fail(&mut ejection, at(0), Failure::Unreachable, 3);
        // However long it was away.
        for tick in 1..4_000 {
            probe(&mut ejection, at(tick * 250), ProbeOutcome::NoConnection);
        }
        assert_eq!(ejection.cause(at(1_000_000)), Some(OutCause::Unreachable));
        probe(&mut ejection, at(1_000_000), ProbeOutcome::Connected);
        assert!(!ejection.is_ejected(at(1_000_000)));
        assert_eq!(ejection.returned_at(), at(1_000_000));
    }

    /// Goal: a server that is up for 300 ms and down for 300 ms gets no second chance within the minute.
    /// Method: probes each 100 ms.
    #[test]
    fn a_flapping_server_returns_once() {
        let mut ejection = Ejection::default();
        let (mut returns, mut was_out) = (0, false);
        for tick in 0..600u64 {
            let (now, is_up) = (at(tick * 100), (tick / 3) % 2 == 0);
            let outcome = if is_up { ProbeOutcome::Connected } else { ProbeOutcome::NoConnection };
            probe(&mut ejection, now, outcome);
            if !is_up {
                ejection.failed(now, Failure::Unreachable, None, &SETTINGS, ROOM);
            }
            let is_out = ejection.is_ejected(now);
            returns += u32::from(was_out && !is_out);
            was_out = is_out;
        }
        assert_eq!((returns, was_out), (1, true));
        // Once it stays up, it is used after twice the longest it ever held.
        let mut now = at(60_000);
        while ejection.is_ejected(now) {
            probe(&mut ejection, now, ProbeOutcome::Connected);
            now += Duration::from_millis(100);
        }
        assert!(now <= at(61_000), "{now:?}");
    }

    #[test]
    fn where_it_is_the_only_one_a_flapping_server_is_used_at_once() {
        let alone = Room { usable: 0, ..ROOM };
        let mut ejection = Ejection::default();
        for round in 0..5u64 {
            let now = at(round * 600);
            for _ in 0..3 {
                ejection.failed(now, Failure::Unreachable, None, &SETTINGS, alone);
            }
            assert!(ejection.is_ejected(now));
            ejection.probed(at(round * 600 + 300), ProbeOutcome::Connected, &SETTINGS, alone);
            assert!(!ejection.is_ejected(at(round * 600 + 300)));
        }
    }

    #[test]
    fn probes_with_a_wrong_answer_take_out_and_only_an_answer_brings_back() {
        let mut ejection = Ejection::default();
        for outcome in [ProbeOutcome::BadAnswer, ProbeOutcome::Answered, ProbeOutcome::BadAnswer] {
            assert_eq!(probe(&mut ejection, at(0), outcome), None);
        }
        assert_eq!(probe(&mut ejection, at(0), ProbeOutcome::BadAnswer), Some(OutCause::Sick));
        probe(&mut ejection, at(100), ProbeOutcome::Connected);
        assert!(ejection.is_ejected(at(100)), "that it accepts connections was known");
        probe(&mut ejection, at(200), ProbeOutcome::Answered);
        assert!(!ejection.is_ejected(at(200)));
    }

    #[test]
    fn an_outlier_stays_out_for_its_time_unless_its_process_ends() {
        let mut ejection = Ejection::default();
        assert!(ejection.found_outlier(at(0), &SETTINGS, ROOM));
        probe(&mut ejection, at(9_000), ProbeOutcome::Answered);
        assert!(ejection.is_ejected(at(9_999)) && !ejection.is_ejected(at(10_000)));
        ejection.settle(at(10_000));
        assert!(ejection.found_outlier(at(11_000), &SETTINGS, ROOM));
        probe(&mut ejection, at(12_000), ProbeOutcome::NoConnection);
        probe(&mut ejection, at(13_000), ProbeOutcome::Answered);
        assert!(ejection.is_ejected(at(13_000)), "the second return waits");
        probe(&mut ejection, at(13_500), ProbeOutcome::Answered);
        assert!(!ejection.is_ejected(at(13_500)));
    }

    #[test]
    fn one_client_alone_ejects_nothing_at_once() {
        let mut ejection = Ejection::default();
        let failed = |ejection: &mut Ejection, ms, client| {
            ejection.failed(at(ms), Failure::Reset, Some(client), &SETTINGS, ROOM)
        };
        for ms in 0..900 {
            assert_eq!(failed(&mut ejection, ms, 7), None, "one client's requests, however many");
        }
        let mut of_two = ejection;
        assert_eq!(failed(&mut of_two, 900, 8), None);
        assert_eq!(failed(&mut of_two, 901, 7), Some(OutCause::Reset), "two clients: it is the server");
        // A server with one client that resets everything is noticed all the same.
        assert_eq!(failed(&mut ejection, 1_000, 7), None);
        assert_eq!(failed(&mut ejection, 2_000, 7), Some(OutCause::Reset));
        assert_eq!(failed(&mut ejection, 12_000, 7), None, "the same client's trial is none");
        assert_eq!(failed(&mut ejection, 12_000, 8), Some(OutCause::Reset));
    }
}
