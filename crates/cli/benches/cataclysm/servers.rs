//! The three servers: two of `flashweir origin`, and PHP.

use crate::machine;
use flashweir_testkit::{Flashweir, Origin, Php};
use std::time::Duration;

/// Processor time of a request at each of them, milliseconds; the paper's took 15.5.
const WORK_MS: f64 = 15.0;
/// One worker each, so that each gets a third of the core.
const WORKERS: u32 = 1;
/// One at work and one waiting.
const CONCURRENCY: usize = 2;
const MEASURED_FOR: Duration = Duration::from_secs(3);
/// Turns of PHP's loop by which its speed is found: long against what a request costs without them.
const TRIAL_TURNS: f64 = 20_000.0;

pub(crate) struct Servers {
    origins: [Origin; 2],
    php: Php,
}

impl Servers {
    /// Starts them, and makes PHP's page cost what a request costs the others. `None`, and a line that says
    /// so, without PHP or nginx.
    pub(crate) fn start(binary: &Flashweir) -> Option<Self> {
        let php = Php::require("cataclysm", WORKERS, &page(0.0))?;
        php.processes().into_iter().for_each(machine::give_core_0);
        let iterations_per_ms = format!("{:.0}", flashweir_testbed::origin::calibrate());
        let origin = || {
            let (workers, work_ms) = (WORKERS.to_string(), WORK_MS.to_string());
            let work =
                ["--workers", &workers, "--work-ms", &work_ms, "--iterations-per-ms", &iterations_per_ms];
            let origin = Origin::start_with(binary, &work);
            machine::give_core_0(origin.process().id());
            origin
        };
        let servers = Self { origins: [origin(), origin()], php };
        let request_ms = |turns| {
            servers.php.serve(&page(turns));
            1e3 / capacity_rps(&servers.php_url())
        };
        let (without_ms, with_ms) = (request_ms(0.0), request_ms(TRIAL_TURNS));
        let origin_ms = 1e3 / capacity_rps(&servers.origins[0].url());
        servers.php.serve(&page(TRIAL_TURNS * (origin_ms - without_ms) / (with_ms - without_ms)));
        Some(servers)
    }

    /// As `upstream.urls` wants them.
    pub(crate) fn urls(&self) -> Vec<String> {
        let origins = self.origins.iter().map(Origin::url);
        origins.chain([self.php_url()]).collect()
    }

    /// Each, and what it does while the others have nothing to do.
    pub(crate) fn capacities_alone_rps(&self) -> Vec<(String, f64)> {
        let names = ["`flashweir origin`", "`flashweir origin`", "PHP-FPM behind nginx"];
        names.into_iter().map(str::to_owned).zip(self.urls().iter().map(|url| capacity_rps(url))).collect()
    }

    /// Capacity of the servers when all are busy.
    pub(crate) fn capacity_together_rps(&self) -> f64 {
        std::thread::scope(|scope| {
            let all: Vec<_> =
                self.urls().into_iter().map(|url| scope.spawn(move || capacity_rps(&url))).collect();
            all.into_iter().map(|one| one.join().expect("a measurement that does not panic")).sum()
        })
    }

    fn php_url(&self) -> String {
        format!("http://{}", self.php.address())
    }
}

/// A loop that no opcode cache can shorten.
fn page(turns: f64) -> String {
    let turns = turns.max(0.0).round();
    format!(
        "$text = 'flashweir'; for ($turn = 0; $turn < {turns}; $turn++) {{ $text = md5($text); }} echo $text;"
    )
}

fn capacity_rps(url: &str) -> f64 {
    flashweir_load::measure_capacity(url, CONCURRENCY, MEASURED_FOR).expect("the server answers")
}
