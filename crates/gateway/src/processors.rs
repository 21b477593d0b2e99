//! Processor time of the gateway's own: what it used, and what it may use.

use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};

/// Mount point of the control groups.
const GROUPS: &str = "/sys/fs/cgroup";

/// Processor time of all threads since the start, seconds.
pub(crate) fn used_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Processors that as many workers may use: no more than the quotas of the control group and of those above
/// it. Without this a gateway with a tenth of a processor would look idle when it is full. Reads a few small
/// files.
pub(crate) fn usable(workers: usize) -> f64 {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    quota(Path::new(GROUPS), &groups).map_or(workers as f64, |quota| quota.min(workers as f64))
}

/// The smallest quota, in processors, by the lines of `/proc/self/cgroup`; none where there is none.
fn quota(mount: &Path, groups: &str) -> Option<f64> {
    let quotas = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        if controllers.is_empty() {
            // Version 2, alone or beside version 1.
            return [mount.to_path_buf(), mount.join("unified")]
                .into_iter()
                .filter_map(|root| least(root, path, of_version_2))
                .reduce(f64::min);
        }
        let is_processor = controllers.split(',').any(|controller| controller == "cpu");
        is_processor.then(|| least(mount.join(controllers), path, of_version_1))?
    });
    quotas.reduce(f64::min)
}

/// The smallest quota on the way from the root to a group. In a container the path may be the host's: then
/// the root is the container's own group.
fn least(root: PathBuf, path: &str, of: fn(&Path) -> Option<f64>) -> Option<f64> {
    let steps = path.split('/').filter(|step| !step.is_empty() && *step != "..");
    let mut folder = root;
    let mut least = of(&folder);
    for step in steps {
        folder.push(step);
        least = [least, of(&folder)].into_iter().flatten().reduce(f64::min);
    }
    least
}

fn of_version_2(folder: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(folder.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    processors(quota, period)
}

fn of_version_1(folder: &Path) -> Option<f64> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    processors(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?)
}

/// None of `max` and of -1, which are no quota.
fn processors(quota: &str, period: &str) -> Option<f64> {
    let [quota, period] = [quota, period].map(|text| text.trim().parse::<f64>().ok());
    let processors = quota? / period?;
    (processors.is_finite() && processors > 0.0).then_some(processors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a writable directory");
        std::fs::write(path, text).expect("a writable directory");
    }

    #[test]
    fn the_smallest_quota_counts_in_both_versions() {
        let root = tempfile::TempDir::new().expect("a directory");
        let root = root.path();
        write(root, "cpu.max", "max 100000\n");
        write(root, "pods/cpu.max", "50000 100000\n");
        write(root, "pods/one/cpu.max", "200000 100000\n");
        assert_eq!(quota(root, "0::/pods/one\n"), Some(0.5), "that of a group above counts, too");
        assert_eq!(quota(root, "0::/elsewhere\n"), None);
        write(root, "cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
        write(root, "cpu,cpuacct/cpu.cfs_period_us", "100000\n");
        write(root, "cpu,cpuacct/pod/cpu.cfs_quota_us", "10000\n");
        write(root, "cpu,cpuacct/pod/cpu.cfs_period_us", "100000\n");
        assert_eq!(quota(root, "4:memory:/x\n3:cpu,cpuacct:/pod\n0::/\n"), Some(0.1));
        assert_eq!(quota(root, "3:cpu,cpuacct:/host/path\n"), None);
    }

    #[test]
    fn nonsense_is_no_quota() {
        let root = tempfile::TempDir::new().expect("a directory");
        for text in ["", "max", "max 100000", "-1 100000", "0 100000", "100000 0", "a b"] {
            write(root.path(), "cpu.max", text);
            assert_eq!(quota(root.path(), "0::/\n"), None, "{text}");
        }
        assert_eq!(quota(root.path(), "no line of the kernel's"), None);
    }

    #[test]
    fn time_is_used_and_there_is_some() {
        let before_s = used_s();
        let sum: u64 = (0..50_000_000u64).fold(0, |sum, it| std::hint::black_box(sum ^ it));
        assert!(used_s() > before_s, "{sum}");
        assert!(usable(64) > 0.0 && usable(1) <= 1.0);
    }
}
