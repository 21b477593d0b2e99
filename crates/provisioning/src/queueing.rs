//! Waiting time of a request for a server, and the number of servers that a rate needs: the G/G/1 bound of
//! Cataclysm and its repairs.
//!
//! **Decides** nothing by itself; [`servers_needed`] is what every planner here asks. **From** a rate with
//! the variation of its gaps, a service time with its variation, a target for the *mean* response time, and
//! the way requests are spread over servers.
//!
//! | model | mean wait | is |
//! |---|---|---|
//! | [`WaitModel::Kingman`] | λ(σ_a² + σ_b²) / 2(1 − ρ) | an upper bound; inverted it is the paper's equation 14 |
//! | [`WaitModel::Daley`] | λ(σ_b² + ρ(2 − ρ)σ_a²) / 2(1 − ρ) | a sharper upper bound |
//! | [`WaitModel::AllenCunneen`] | ρ/(1 − ρ) · (c_a² + c_s²)/2 · E\[S\] | an estimate, exact for M/M/1 |
//!
//! **Repair C-8.** The paper uses the variance of the gaps between arrivals as if a server saw the whole
//! stream. A server sees a part: of a random split among n servers the squared coefficient of variation is
//! 1 + (c_a² − 1)/n, of turns c_a²/n, and the mean gap is n times longer. So the bound for one server depends
//! on n, and the number of servers is found by a search. The search may find nothing: of a random split the
//! bound grows with n again, and exceeds a tight target for every n. Then the sharper model is asked
//! ([`size`]). Where all servers take from one queue ([`Dispatch::SharedQueue`], as behind one gateway)
//! servers help each other, and the paper's model asks for too many.
//!
//! **Repair C-5.** A target is a 95th percentile, the bound is one of the mean: callers divide the target by
//! the measured ratio of the two.
//!
//! **Cost** O(log servers) evaluations, no memory. Source: Cataclysm §4.1; Kleinrock, Queueing Systems 2;
//! Daley 1977; Sakasegawa 1977.

/// Time of a server that one request takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServiceTime {
    /// E\[S\], seconds; positive.
    pub mean_s: f64,
    /// Squared coefficient of variation, c_s²: 0 constant, 1 exponential.
    pub squared_variation: f64,
}

/// A stream of requests, all servers' together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrivalStream {
    /// Requests a second (λ).
    pub rate_rps: f64,
    /// Squared coefficient of variation of the gaps, c_a²: 1 for Poisson arrivals.
    pub squared_variation: f64,
}

/// Dispatch of requests to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// Each request goes to any server, each equally likely.
    Random,
    /// Servers take turns.
    RoundRobin,
    /// All servers take from one queue: a request waits only while every server is busy.
    SharedQueue,
}

/// Formula of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitModel {
    /// Kingman's upper bound, the paper's.
    Kingman,
    /// Daley's upper bound.
    Daley,
    /// The estimate of Allen and Cunneen.
    AllenCunneen,
}

/// Number of servers that a stream needs, and the model by which it was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerCount {
    /// Servers.
    pub servers: u32,
    /// The model that found the number.
    pub model: WaitModel,
}

/// The paper's equation 14: the rate that one server sustains with this mean response time, given the
/// variance of the gaps between *its* arrivals (seconds²). 0 where the target does not exceed the service
/// time. Published as it stands, flaw C-8 included: a caller that passes the variance of the whole stream
/// gets the paper's number.
#[must_use]
pub fn published_capacity_rps(service: ServiceTime, gap_variance_s2: f64, target_mean_s: f64) -> f64 {
    let slack_s = target_mean_s - service.mean_s;
    if slack_s <= 0.0 || service.mean_s <= 0.0 {
        return 0.0;
    }
    let variances_s2 = gap_variance_s2.max(0.0) + service.squared_variation * service.mean_s * service.mean_s;
    1.0 / (service.mean_s + variances_s2 / (2.0 * slack_s))
}

/// The mean wait of a request, seconds; none where the servers cannot keep up (ρ ≥ 1) or there are none. Of a
/// rate of 0 the wait is 0.
#[must_use]
pub fn mean_wait_s(
    model: WaitModel,
    stream: ArrivalStream,
    service: ServiceTime,
    servers: u32,
    dispatch: Dispatch,
) -> Option<f64> {
    let n = f64::from(servers);
    let utilisation = stream.rate_rps * service.mean_s / n;
    if servers == 0 || utilisation.is_nan() || utilisation >= 1.0 {
        return None;
    }
    if stream.rate_rps <= 0.0 {
        return Some(0.0);
    }
    let gap_variation = match dispatch {
        Dispatch::Random => 1.0 + (stream.squared_variation - 1.0) / n,
        Dispatch::RoundRobin => stream.squared_variation / n,
        Dispatch::SharedQueue => return Some(shared_wait_s(model, stream, service, n, utilisation)),
    };
    let free = 1.0 - utilisation;
    let service_s = service.mean_s;
    // λσ² of gaps is c_a²/λ, of service times λ c_s² E[S]² = ρ c_s² E[S], both of one server.
    let gaps_s = gap_variation * n / stream.rate_rps;
    let services_s = utilisation * service.squared_variation * service_s;
    Some(match model {
        WaitModel::Kingman => (gaps_s + services_s) / (2.0 * free),
        WaitModel::Daley => (services_s + utilisation * (2.0 - utilisation) * gaps_s) / (2.0 * free),
        WaitModel::AllenCunneen => {
            utilisation / free * (gap_variation + service.squared_variation) / 2.0 * service_s
        }
    })
}

/// Of one queue before `n` servers: Kingman's bound for GI/G/n for both bounds, Sakasegawa's form of Allen
/// and Cunneen's estimate.
fn shared_wait_s(
    model: WaitModel,
    stream: ArrivalStream,
    service: ServiceTime,
    n: f64,
    utilisation: f64,
) -> f64 {
    let free = 1.0 - utilisation;
    let service_s = service.mean_s;
    match model {
        WaitModel::Kingman | WaitModel::Daley => {
            let gaps_s = stream.squared_variation / stream.rate_rps;
            let per_server = service.squared_variation + (n - 1.0) / n;
            (gaps_s + utilisation * per_server * service_s) / (2.0 * free)
        }
        WaitModel::AllenCunneen => {
            let waits = libm::pow(utilisation, libm::sqrt(2.0 * (n + 1.0)) - 1.0) / (n * free);
            waits * (stream.squared_variation + service.squared_variation) / 2.0 * service_s
        }
    }
}

/// The fewest servers with which the mean response time is at most `target_mean_s` by this model; none where
/// no number up to `servers_max` is enough. O(log `servers_max`) evaluations: beyond the servers that the
/// work itself needs, each model's wait falls with the number of servers up to one minimum and rises from
/// there.
#[must_use]
pub fn servers_needed(
    model: WaitModel,
    stream: ArrivalStream,
    service: ServiceTime,
    target_mean_s: f64,
    dispatch: Dispatch,
    servers_max: u32,
) -> Option<u32> {
    if stream.rate_rps <= 0.0 {
        return Some(0);
    }
    let slack_s = target_mean_s - service.mean_s;
    let work = stream.rate_rps * service.mean_s;
    if slack_s <= 0.0 || work.is_nan() || work >= f64::from(servers_max) {
        return None;
    }
    let wait_s = |servers| mean_wait_s(model, stream, service, servers, dispatch).unwrap_or(f64::INFINITY);
    // Below `servers_max`, so it fits; the fewest that are not always busy.
    let fewest = work as u32 + 1;
    let within = |most: u32| {
        let best = first_that(fewest, most, |servers| wait_s(servers + 1) >= wait_s(servers));
        let enough = first_that(fewest, best, |servers| wait_s(servers) <= slack_s);
        (wait_s(enough) <= slack_s).then_some(enough)
    };
    // Nearly always the answer is near, and found there with a third of the evaluations.
    let near = fewest.saturating_mul(2).saturating_add(16).min(servers_max);
    within(near).or_else(|| within(servers_max))
}

/// The first number in `low..high` of which `holds` is true, or `high`; `holds` stays true once it is.
fn first_that(mut low: u32, mut high: u32, holds: impl Fn(u32) -> bool) -> u32 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// The fewest servers by the best model for this way of spreading requests: Daley's bound for servers that
/// are on their own, and where that has no answer, or servers share a queue, the estimate. None where the
/// target cannot be met with `servers_max`.
#[must_use]
pub fn size(
    stream: ArrivalStream,
    service: ServiceTime,
    target_mean_s: f64,
    dispatch: Dispatch,
    servers_max: u32,
) -> Option<ServerCount> {
    let by = |model| {
        let servers = servers_needed(model, stream, service, target_mean_s, dispatch, servers_max)?;
        Some(ServerCount { servers, model })
    };
    let bound = if dispatch == Dispatch::SharedQueue { None } else { by(WaitModel::Daley) };
    bound.or_else(|| by(WaitModel::AllenCunneen))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPONENTIAL: ServiceTime = ServiceTime { mean_s: 0.0155, squared_variation: 1.0 };

    fn poisson(rate_rps: f64) -> ArrivalStream {
        ArrivalStream { rate_rps, squared_variation: 1.0 }
    }

    fn kingman(rate_rps: f64, service: ServiceTime, target_s: f64) -> Option<u32> {
        servers_needed(WaitModel::Kingman, poisson(rate_rps), service, target_s, Dispatch::Random, 20_000)
    }

    /// Goal: the published capacity and the number of servers have the known values. Method: a table
    /// computed beforehand in another language, for 15.5 ms, a target of 1 s and a random split.
    #[test]
    fn the_inversion_has_the_known_values() {
        let rates = [100.0, 400.0, 1_600.0, 10_000.0];
        assert_eq!(rates.map(|rate| kingman(rate, EXPONENTIAL, 1.0)), [2, 7, 26, 158].map(Some));
        let uneven = ServiceTime { squared_variation: 20.0, ..EXPONENTIAL };
        assert_eq!(rates.map(|rate| kingman(rate, uneven, 1.0)), [2, 8, 29, 182].map(Some));
        let capacity = |target_s| {
            let rate_rps = 63.0;
            published_capacity_rps(EXPONENTIAL, 1.0 / (rate_rps * rate_rps), target_s)
        };
        assert!(
            (capacity(1.0) - 63.4).abs() < 0.2 && (capacity(2.0) - 64.0).abs() < 0.2,
            "{}",
            capacity(1.0)
        );
        assert_eq!(published_capacity_rps(EXPONENTIAL, 1.0, 0.0155), 0.0);
    }

    /// Goal: a target for which the published bound has no number of servers is found, and the repair has
    /// one.
    #[test]
    fn a_tight_target_has_no_published_answer_and_a_repaired_one() {
        assert_eq!(kingman(400.0, EXPONENTIAL, 0.05), None);
        let repaired = size(poisson(400.0), EXPONENTIAL, 0.05, Dispatch::Random, 20_000).unwrap();
        assert_eq!((repaired.servers, repaired.model), (12, WaitModel::Daley));
        // Of Poisson arrivals even Daley's bound never falls below the service time.
        let tighter = size(poisson(400.0), EXPONENTIAL, 0.03, Dispatch::Random, 20_000).unwrap();
        assert_eq!(tighter.model, WaitModel::AllenCunneen);
        assert_eq!(size(poisson(400.0), EXPONENTIAL, 0.0155, Dispatch::Random, 20_000), None);
    }

    /// Goal: the estimates are exact where theory is: M/M/1, and M/M/2 within a few hundredths.
    #[test]
    fn estimates_agree_with_markovian_queues() {
        let wait_s = |servers, rate, dispatch| {
            mean_wait_s(WaitModel::AllenCunneen, poisson(rate), EXPONENTIAL, servers, dispatch).unwrap()
        };
        let one = 0.8 / 0.2 * 0.0155;
        assert!((wait_s(1, 0.8 / 0.0155, Dispatch::Random) - one).abs() < 1e-12);
        assert!((wait_s(1, 0.8 / 0.0155, Dispatch::SharedQueue) - one).abs() < 1e-12);
        let two = 0.0155 * 0.64 / (1.0 - 0.64);
        assert!((wait_s(2, 1.6 / 0.0155, Dispatch::SharedQueue) / two - 1.0).abs() < 0.05);
    }

    #[test]
    fn extremes_have_answers() {
        let wait = |rate, servers| {
            mean_wait_s(WaitModel::Daley, poisson(rate), EXPONENTIAL, servers, Dispatch::Random)
        };
        assert_eq!(
            (wait(0.0, 1), wait(1e9, 5), wait(1.0, 0), wait(f64::NAN, 1)),
            (Some(0.0), None, None, None)
        );
        assert_eq!(kingman(0.0, EXPONENTIAL, 1.0), Some(0));
        assert_eq!(kingman(1e9, EXPONENTIAL, 1.0), None);
        assert_eq!(kingman(f64::NAN, EXPONENTIAL, 1.0), None);
        assert_eq!(kingman(f64::INFINITY, EXPONENTIAL, 1.0), None);
    }
}
