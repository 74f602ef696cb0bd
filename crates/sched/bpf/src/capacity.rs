//! Whether best-effort work would get CPU time now.

use std::fs;
use std::path::Path;
use std::time::Instant;

/// CPUs' worth of time that must have been left over for frozen work to be thawed.
const ROOM_CPUS: f64 = 0.25;

/// What the CPUs had left over since the last look.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    last: Option<(Instant, u64, u64)>,
}

impl Capacity {
    /// Look at idle time in `/proc/stat` below a root, and at the time that best-effort work had so far \[ns\].
    pub(crate) fn has_room(&mut self, root: &Path, be_ns: u64) -> bool {
        let text = fs::read_to_string(root.join("proc/stat")).unwrap_or_default();
        let (now, idle) = (Instant::now(), idle_ticks(&text));
        let last = self.last.replace((now, idle, be_ns));
        let Some((then, idle_then, be_then)) = last else { return false };
        // SOURCE: USER_HZ is 100 on every architecture that Debian builds.
        let idle_s = idle.saturating_sub(idle_then) as f64 / 100.0;
        let be_s = be_ns.saturating_sub(be_then) as f64 / 1e9;
        idle_s + be_s > ROOM_CPUS * now.duration_since(then).as_secs_f64()
    }
}

/// Idle time of all CPUs, in ticks of 10 ms.
fn idle_ticks(stat: &str) -> u64 {
    let line = stat.lines().find(|line| line.starts_with("cpu ")).unwrap_or_default();
    line.split_whitespace().nth(4).and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_the_fourth_number() {
        assert_eq!(idle_ticks("cpu  1 2 3 44 5 6\ncpu0 1 2 3 9 5 6\n"), 44);
        assert_eq!(idle_ticks(""), 0);
    }

    #[test]
    fn the_first_look_knows_no_room_and_time_of_best_effort_work_counts() {
        let mut capacity = Capacity::default();
        assert!(!capacity.has_room(Path::new("/nowhere"), 0));
        assert!(capacity.has_room(Path::new("/nowhere"), 1_000_000_000_000));
        assert!(!capacity.has_room(Path::new("/nowhere"), 1_000_000_000_000));
    }
}
