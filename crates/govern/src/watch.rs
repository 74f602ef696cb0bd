use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::GovernError;
use crate::home::{Home, children};
use crate::text_file::look;

/// Window over which the kernel looks for pressure [us]. Users without `CAP_SYS_RESOURCE` get windows of
/// two seconds and more only: too late, so there one looks regularly.
/// SOURCE: the check of `window_us` in `psi_trigger_create` of the kernel's `sched/psi.c`.
const WINDOW_US: f64 = 500_000.0;

/// Pressure of everything, best-effort commands included.
const SYSTEM_PRESSURE: &str = "/proc/pressure/cpu";

/// A look may take one part in this many of the time: at every thread of a host it takes long.
const LOOK_PARTS: u32 = 50;

/// How a service's waiting for CPUs is known.
#[derive(Debug)]
pub struct Watch {
    source: Source,
    triggers: Vec<File>,
    /// Share of waiting of which the kernel shall tell.
    high: f64,
    /// A watched group is gone: whoever starts it again makes it again.
    is_lost: bool,
    last: Option<Instant>,
    cost: Duration,
}

#[derive(Debug)]
enum Source {
    /// `cpu.pressure` of version 2 groups: file, and total at the last look [us].
    Pressure(Vec<(PathBuf, Option<u64>)>),
    /// Time runnable but not executing of each thread at the last look [ns].
    Waiting {
        of: Threads,
        seen: HashMap<i32, u64>,
        /// Pressure of the whole system at the last look [us]: where it has not grown nobody has waited.
        system_us: Option<u64>,
    },
}

impl Source {
    fn triggers(&self, high: f64) -> Vec<File> {
        let files: Vec<&Path> = match self {
            Self::Pressure(files) => files.iter().map(|(file, _)| file.as_path()).collect(),
            Self::Waiting { .. } => vec![Path::new(SYSTEM_PRESSURE)],
        };
        // Without all of them something would go unnoticed.
        let triggers: Option<Vec<File>> = files.into_iter().map(|file| trigger(file, high)).collect();
        triggers.unwrap_or_default()
    }
}

#[derive(Debug)]
enum Threads {
    /// Those in groups of either version.
    Groups(Vec<PathBuf>),
    /// All but those of a home.
    AllBut(Home),
}

impl Watch {
    /// Watches the groups of services, or without any everything that is not best-effort.
    ///
    /// # Errors
    ///
    /// [`GovernError::Usage`] for a group that is not there, [`GovernError::Capability`] where the kernel
    /// counts no waiting times.
    pub fn new(services: &[PathBuf], home: &Home, high: f64) -> Result<Self, GovernError> {
        for service in services {
            if !service.join("cgroup.procs").exists() {
                let path = service.display();
                return Err(GovernError::usage(format!("`--service {path}`: no control group is there")));
            }
        }
        let files: Vec<PathBuf> = services.iter().map(|service| service.join("cpu.pressure")).collect();
        let source = if !files.is_empty() && files.iter().all(|file| total_us(file).is_some()) {
            Source::Pressure(files.into_iter().map(|file| (file, None)).collect())
        } else {
            let of = if services.is_empty() {
                Threads::AllBut(home.clone())
            } else {
                Threads::Groups(services.to_vec())
            };
            if waited_ns(&PathBuf::from("/proc/self")).is_none() {
                let message =
                    "the kernel counts neither pressure nor waiting times (no `/proc/self/schedstat`)";
                let hint = "use a kernel with CONFIG_PSI or CONFIG_SCHED_INFO";
                return Err(GovernError::capability(message, hint));
            }
            Source::Waiting { of, seen: HashMap::new(), system_us: None }
        };
        let triggers = source.triggers(high);
        Ok(Self { source, triggers, high, is_lost: false, last: None, cost: Duration::ZERO })
    }

    /// Whether a watched group is gone.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Takes note that the kernel tells no more of a group: it is gone. Looks find it when it is back.
    pub fn lose(&mut self) {
        self.is_lost = true;
        self.triggers.clear();
    }

    fn find_again(&mut self) {
        let Source::Pressure(files) = &self.source else { return };
        if self.is_lost && files.iter().all(|(file, _)| total_us(file).is_some()) {
            self.is_lost = false;
            self.triggers = self.source.triggers(self.high);
        }
    }

    /// What becomes readable with urgent data when somebody waits; empty where one must look regularly.
    #[must_use]
    pub fn triggers(&self) -> Vec<BorrowedFd<'_>> {
        self.triggers.iter().map(AsFd::as_fd).collect()
    }

    /// In a few words, for `status`.
    #[must_use]
    pub fn describe(&self) -> String {
        let names = |paths: &mut dyn Iterator<Item = &PathBuf>| {
            paths.map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        };
        match &self.source {
            Source::Pressure(files) => {
                format!("pressure: {}", names(&mut files.iter().map(|(file, _)| file)))
            }
            Source::Waiting { of: Threads::Groups(groups), .. } => {
                format!("waiting times of the threads in {}", names(&mut groups.iter()))
            }
            Source::Waiting { of: Threads::AllBut(_), .. } => {
                "waiting times of every thread that is not best-effort".to_owned()
            }
        }
    }

    /// Share of the time since the last look in which a service waited: 0 to 1, 0 at the first look.
    ///
    /// From pressure it is the time in which at least one thread waited. From waiting times it is their
    /// sum over all threads, at most the whole time.
    pub fn measure(&mut self) -> f64 {
        self.find_again();
        let now = Instant::now();
        let elapsed_us = self.last.replace(now).map(|last| now.duration_since(last).as_secs_f64() * 1e6);
        let waited_us = match &mut self.source {
            Source::Pressure(files) => {
                files.iter_mut().map(|(file, last)| grown_us(file, last)).fold(0.0, f64::max)
            }
            Source::Waiting { of, seen, system_us } => {
                let before = *system_us;
                *system_us = total_us(Path::new(SYSTEM_PRESSURE));
                // Without pressure information one cannot know better than to look.
                if system_us.is_some() && *system_us == before { 0.0 } else { grown_waits_us(of, seen) }
            }
        };
        self.cost = now.elapsed();
        match elapsed_us {
            Some(elapsed_us) if elapsed_us > 0.0 => (waited_us / elapsed_us).min(1.0),
            _ => 0.0,
        }
    }

    /// Least time between two looks, so that looking costs little.
    #[must_use]
    pub fn least_pause_ns(&self) -> u64 {
        u64::try_from((self.cost * LOOK_PARTS).as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Asks the kernel to tell when the share of waiting within a window reaches `high`.
fn trigger(file: &Path, high: f64) -> Option<File> {
    let stall_us = (WINDOW_US * high).max(1.0);
    let attempt = || -> io::Result<File> {
        let mut opened =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(file)?;
        opened.write_all(format!("some {stall_us:.0} {WINDOW_US:.0}\0").as_bytes())?;
        Ok(opened)
    };
    attempt().ok()
}

fn total_us(file: &Path) -> Option<u64> {
    let text = look(file)?;
    let line = text.lines().find(|line| line.starts_with("some"))?;
    line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[expect(clippy::cast_precision_loss, reason = "a difference of microseconds")]
fn grown_us(file: &Path, last: &mut Option<u64>) -> f64 {
    let Some(total) = total_us(file) else {
        *last = None;
        return 0.0;
    };
    last.replace(total).map_or(0.0, |before| total.saturating_sub(before) as f64)
}

#[expect(clippy::cast_precision_loss, reason = "a difference of nanoseconds")]
fn grown_waits_us(of: &Threads, seen: &mut HashMap<i32, u64>) -> f64 {
    let mut now_seen = HashMap::with_capacity(seen.len());
    let mut grown_ns = 0_u64;
    for (thread, path) in threads(of) {
        let Some(waited) = waited_ns(&path) else { continue };
        // What a thread had waited before it was first seen is nobody's business any more.
        let before = seen.get(&thread).copied().unwrap_or(waited);
        grown_ns = grown_ns.saturating_add(waited.saturating_sub(before));
        now_seen.insert(thread, waited);
    }
    *seen = now_seen;
    grown_ns as f64 / 1e3
}

/// SOURCE: second field of `/proc/<pid>/schedstat`, sched-stats.rst: time spent waiting on a runqueue.
fn waited_ns(process: &Path) -> Option<u64> {
    look(&process.join("schedstat"))?.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn threads(of: &Threads) -> Vec<(i32, PathBuf)> {
    match of {
        Threads::Groups(groups) => groups.iter().flat_map(|group| threads_in(group)).collect(),
        Threads::AllBut(home) => {
            let left_out: HashSet<i32> = home.processes().into_iter().collect();
            numbered(Path::new("/proc"))
                .into_iter()
                .filter(|(process, _)| !left_out.contains(process))
                .flat_map(|(_, path)| numbered(&path.join("task")))
                .collect()
        }
    }
}

fn threads_in(group: &Path) -> Vec<(i32, PathBuf)> {
    let text =
        ["cgroup.threads", "tasks"].iter().find_map(|name| look(&group.join(name))).unwrap_or_default();
    let own = text.lines().filter_map(|line| line.parse().ok());
    let mut found: Vec<(i32, PathBuf)> =
        own.map(|thread: i32| (thread, PathBuf::from(format!("/proc/{thread}")))).collect();
    for child in children(group) {
        found.extend(threads_in(&child));
    }
    found
}

fn numbered(folder: &Path) -> Vec<(i32, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_of_a_group_is_the_growth_of_its_total() {
        let group = tempfile::tempdir().unwrap();
        let set = |total: u64| {
            let text = format!("some avg10=9.0 avg60=9.0 avg300=9.0 total={total}\nfull avg10=0 total=99\n");
            fs::write(group.path().join("cpu.pressure"), text).unwrap();
        };
        set(1_000_000);
        fs::write(group.path().join("cgroup.procs"), "").unwrap();
        let mut watch = Watch::new(&[group.path().to_owned()], &Home::default(), 0.05).unwrap();
        assert!(watch.describe().starts_with("pressure: "));
        assert!(watch.measure() < f64::EPSILON, "what was before does not count");
        std::thread::sleep(std::time::Duration::from_millis(20));
        set(1_000_500);
        let share = watch.measure();
        assert!(share > 0.0 && share <= 0.025, "0.5 ms within 20 ms or more: {share}");
        set(900_000_000);
        assert!((watch.measure() - 1.0).abs() < f64::EPSILON, "never above the whole");
    }

    #[test]
    fn a_group_that_goes_and_comes_back_is_watched_again() {
        let group = tempfile::tempdir().unwrap();
        let file = group.path().join("cpu.pressure");
        // Longer than what asks for a trigger, which a plain file keeps.
        let set = |total: u64| {
            fs::write(&file, format!("some avg10=9.00 avg60=9.00 avg300=9.00 total={total}\n")).unwrap();
        };
        fs::write(group.path().join("cgroup.procs"), "").unwrap();
        set(900_000_000);
        let mut watch = Watch::new(&[group.path().to_owned()], &Home::default(), 0.05).unwrap();
        watch.measure();
        fs::remove_file(&file).unwrap();
        watch.lose();
        assert!(watch.measure() < f64::EPSILON && watch.is_lost());
        set(950_000_000);
        assert!(watch.measure() < f64::EPSILON && !watch.is_lost(), "a new group begins anew");
        set(990_000_000);
        assert!(watch.measure() > 0.99);
    }

    #[test]
    fn a_group_without_pressure_is_watched_by_its_threads() {
        let group = tempfile::tempdir().unwrap();
        fs::write(group.path().join("cgroup.procs"), "").unwrap();
        fs::write(group.path().join("tasks"), std::process::id().to_string()).unwrap();
        let mut watch = Watch::new(&[group.path().to_owned()], &Home::default(), 0.05).unwrap();
        assert!(watch.describe().starts_with("waiting times of the threads in "));
        assert!(watch.measure() < f64::EPSILON);
        assert!((0.0..=1.0).contains(&watch.measure()));
    }

    #[test]
    fn a_group_that_is_not_there_is_a_wrong_request() {
        let error = Watch::new(&[PathBuf::from("/nowhere")], &Home::default(), 0.05).unwrap_err();
        assert!(matches!(error, GovernError::Usage(_)) && error.to_string().contains("/nowhere"));
    }

    #[test]
    fn without_a_service_every_thread_counts() {
        let mut watch = Watch::new(&[], &Home::default(), 0.05).unwrap();
        watch.measure();
        assert!(watch.least_pause_ns() > 0);
        let Source::Waiting { seen, .. } = &watch.source else { panic!("by threads") };
        assert!(seen.contains_key(&i32::try_from(std::process::id()).unwrap()));
    }
}
