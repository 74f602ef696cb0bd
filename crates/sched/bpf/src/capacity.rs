//! Whether best-effort work would get CPU time now.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// CPUs' worth of time that must have been left over for frozen work to be thawed.
const ROOM_CPUS: f64 = 0.25;

/// What the CPUs had left over since the last look.
#[derive(Debug)]
pub(crate) struct Capacity {
    /// CPUs that best-effort work may have only while none of them has anything else to do.
    cores: Vec<Vec<usize>>,
    last: Option<(Instant, BTreeMap<usize, u64>, u64)>,
}

impl Capacity {
    /// Of CPUs in groups: one that idles beside one that does not counts for nothing.
    pub(crate) fn new(cores: Vec<Vec<usize>>) -> Self {
        Self { cores, last: None }
    }

    /// Look at idle time in `/proc/stat` below a root, and at the time that best-effort work had so far \[ns\].
    pub(crate) fn has_room(&mut self, root: &Path, be_ns: u64) -> bool {
        let text = fs::read_to_string(root.join("proc/stat")).unwrap_or_default();
        let (now, idle) = (Instant::now(), idle_ticks(&text));
        let last = self.last.replace((now, idle.clone(), be_ns));
        let Some((then, idle_then, be_then)) = last else { return false };
        let ticks = |cpu: &usize| Some(idle.get(cpu)?.saturating_sub(*idle_then.get(cpu)?));
        let of_core = |core: &Vec<usize>| {
            let threads: Vec<u64> = core.iter().filter_map(ticks).collect();
            threads.iter().min().copied().unwrap_or(0) * threads.len() as u64
        };
        let idle_ticks: u64 = self.cores.iter().map(of_core).sum();
        // SOURCE: USER_HZ is 100 on every architecture that Debian builds.
        let idle_s = idle_ticks as f64 / 100.0;
        let be_s = be_ns.saturating_sub(be_then) as f64 / 1e9;
        idle_s + be_s > ROOM_CPUS * now.duration_since(then).as_secs_f64()
    }
}

/// Idle time of each CPU that is on line, in ticks of 10 ms.
fn idle_ticks(stat: &str) -> BTreeMap<usize, u64> {
    stat.lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("cpu")?.split_whitespace();
            // The first line is that of all CPUs, without a number.
            let number = line.strip_prefix("cpu")?.starts_with(|sign: char| sign.is_ascii_digit());
            let cpu = words.next().filter(|_| number)?.parse().ok()?;
            Some((cpu, words.nth(3)?.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_the_fourth_number() {
        let found = idle_ticks("cpu  1 2 3 44 5 6\ncpu0 1 2 3 9 5 6\ncpu10 1 2 3 7 5 6\nctxt 5 5 5 5 5\n");
        assert_eq!(found, BTreeMap::from([(0, 9), (10, 7)]));
        assert!(idle_ticks("").is_empty());
    }

    #[test]
    fn the_first_look_knows_no_room_and_time_of_best_effort_work_counts() {
        let mut capacity = Capacity::new(vec![vec![0]]);
        assert!(!capacity.has_room(Path::new("/nowhere"), 0));
        assert!(capacity.has_room(Path::new("/nowhere"), 1_000_000_000_000));
        assert!(!capacity.has_room(Path::new("/nowhere"), 1_000_000_000_000));
    }

    #[test]
    fn a_cpu_that_idles_beside_a_service_is_no_room() {
        let host = tempfile::tempdir().unwrap();
        fs::create_dir(host.path().join("proc")).unwrap();
        let tell = |idle: [u64; 4]| {
            let lines = (0..).zip(idle).map(|(cpu, ticks): (u32, u64)| format!("cpu{cpu} 0 0 0 {ticks} 0\n"));
            fs::write(host.path().join("proc/stat"), lines.collect::<String>()).unwrap();
        };
        let mut strict = Capacity::new(vec![vec![0, 1], vec![2, 3]]);
        let mut loose = Capacity::new((0..4).map(|cpu| vec![cpu]).collect());
        for (idle, expected) in
            [([0; 4], [false; 2]), ([0, 900, 900, 0], [false, true]), ([0, 999, 1900, 900], [true; 2])]
        {
            tell(idle);
            let found = [&mut strict, &mut loose].map(|capacity| capacity.has_room(host.path(), 0));
            assert_eq!(found, expected, "{idle:?}");
        }
    }
}
