use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use steelyard_model::Source;

use super::file::{KeptFile, io_bytes, keyed, number, pressure_ns, read_text, write_text};
use super::hold::{Hold, KernelMemory, Usage, open_to_write};
use super::kill::{kill_unified, processes};
use super::readings::Sample;
use super::removal::{remove_empty, remove_tree};
use super::{CgroupError, Controller, GroupLimits};

/// `cpu.weight` at its largest and as the kernel sets it.
/// SOURCE: `CGROUP_WEIGHT_MAX` and `CGROUP_WEIGHT_DFL` in the kernel's `cgroup.h`.
pub(super) const WEIGHTS: (&str, &str) = ("10000", "100");

/// The version 2 group of a run; removed on drop with all that lives in it.
#[derive(Debug)]
pub struct Leaf {
    path: PathBuf,
    directory: File,
    controllers: BTreeSet<Controller>,
    files: Files,
    hold: OnceLock<Arc<Hold>>,
    is_removed: bool,
}

/// What is read of every run.
#[derive(Debug)]
struct Files {
    events: Option<KeptFile>,
    /// Of a group that may serve again.
    counts: Option<KeptFile>,
    cpu_stat: Option<KeptFile>,
    cpu_pressure: Option<KeptFile>,
    memory_pressure: Option<KeptFile>,
    io_pressure: Option<KeptFile>,
}

impl Files {
    fn open(group: &Path, controllers: &BTreeSet<Controller>) -> Self {
        let open = |name: &str| KeptFile::open_to_read(group.join(name));
        Self {
            events: open("cgroup.events"),
            counts: controllers.is_empty().then(|| open("cgroup.stat")).flatten(),
            cpu_stat: open("cpu.stat"),
            cpu_pressure: open("cpu.pressure"),
            memory_pressure: open("memory.pressure"),
            io_pressure: open("io.pressure"),
        }
    }
}

impl Leaf {
    pub(super) fn create(path: PathBuf, controllers: &BTreeSet<Controller>) -> Result<Self, CgroupError> {
        fs::create_dir(&path).map_err(|source| CgroupError::Create { path: path.clone(), source })?;
        let directory = File::open(&path).map_err(|source| CgroupError::read(&path, source))?;
        let files = Files::open(&path, controllers);
        Ok(Self {
            path,
            directory,
            controllers: controllers.clone(),
            files,
            hold: OnceLock::new(),
            is_removed: false,
        })
    }

    /// The descriptor for `CLONE_INTO_CGROUP`.
    #[must_use]
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Where the group is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn has(&self, controller: Controller) -> bool {
        self.controllers.contains(&controller)
    }

    fn write(&self, name: &str, value: &str) -> Result<(), CgroupError> {
        write_text(&self.path.join(name), value)
    }

    fn text(&self, name: &str) -> Option<String> {
        read_text(&self.path.join(name)).ok()
    }

    /// Sets the limits whose controllers this leaf has; the others are left to version 1.
    pub(super) fn apply(&self, limits: &GroupLimits) -> Result<(), CgroupError> {
        if self.has(Controller::Memory)
            && let Some(bytes) = limits.memory_bytes
        {
            self.write("memory.max", &bytes.to_string())?;
            // Without swap the limit is one of memory; the file is absent without swap support.
            let _ = self.write("memory.swap.max", "0");
            // One victim takes the whole run with it: half a program measures nothing.
            let _ = self.write("memory.oom.group", "1");
        }
        if self.has(Controller::Pids)
            && let Some(count) = limits.process_count
        {
            self.write("pids.max", &count.to_string())?;
        }
        if self.has(Controller::Cpuset) {
            if let Some(cpus) = &limits.cpus {
                self.write("cpuset.cpus", cpus)?;
            }
            if let Some(nodes) = &limits.memory_nodes {
                self.write("cpuset.mems", nodes)?;
            }
        }
        if self.has(Controller::Cpu) && limits.is_maximal_weight {
            self.write("cpu.weight", WEIGHTS.0)?;
        }
        Ok(())
    }

    /// What is needed before the gate opens: the set-up of the child counts already, and so do earlier runs.
    pub(super) fn sample_before(&self) -> Sample {
        let mut sample = Sample::default();
        self.add_cpu(&mut sample);
        sample.cpu_pressure_ns = pressure(self.files.cpu_pressure.as_ref());
        sample.memory_pressure_ns = pressure(self.files.memory_pressure.as_ref());
        sample.io_pressure_ns = pressure(self.files.io_pressure.as_ref());
        sample
    }

    /// Everything, once nothing lives here any more.
    pub(super) fn sample_after(&self) -> Sample {
        let mut sample = self.sample_before();
        if self.has(Controller::Memory) {
            let peak = self.text("memory.peak").as_deref().and_then(number);
            sample.memory_bytes = peak.map(|value| (value, Source::Cgroup2));
            sample.oom_kills = self.text("memory.events").and_then(|text| keyed(&text, "oom_kill"));
        }
        if self.has(Controller::Pids) {
            sample.refused_processes = self.text("pids.events").and_then(|text| keyed(&text, "max"));
        }
        if self.has(Controller::Io)
            && let Some((read, written)) = self.text("io.stat").as_deref().map(io_bytes)
        {
            sample.read_bytes = Some((read, Source::Cgroup2));
            sample.written_bytes = Some((written, Source::Cgroup2));
        }
        sample
    }

    fn add_cpu(&self, sample: &mut Sample) {
        let Some(text) = self.files.cpu_stat.as_ref().and_then(|file| file.read().ok()) else { return };
        let value = |key| keyed(&text, key)?.checked_mul(1000).map(|nanos| (nanos, Source::Cgroup2));
        sample.usage_ns = value("usage_usec");
        sample.user_ns = value("user_usec");
        sample.system_ns = value("system_usec");
    }

    /// CPU time used so far [ns].
    #[must_use]
    pub fn usage_ns(&self) -> Option<u64> {
        self.files.cpu_stat.as_ref()?.keyed("usage_usec")?.checked_mul(1000)
    }

    /// Whether a living process is in it.
    #[must_use]
    pub fn is_populated(&self) -> bool {
        self.files.events.as_ref().and_then(|file| file.keyed("populated")) == Some(1)
    }

    /// Whether nothing of a run that is over can act on the next one here: without controllers there is no
    /// limit, no peak and no count but those that are read before and after, and the run made no groups of its own.
    ///
    /// KERNEL: what is cloned into a group that `cgroup.kill` has ended once is killed too (seen with 6.18).
    pub(super) fn is_as_new(&self) -> bool {
        // ORDERING: who ended the run has handed it over since.
        if self.hold.get().is_some_and(|hold| hold.is_ended.load(Ordering::Relaxed)) {
            return false;
        }
        let counts = self.files.counts.as_ref().and_then(|file| file.read().ok());
        let is_none = |key| counts.as_ref().and_then(|text| keyed(text, key)) == Some(0);
        is_none("nr_descendants") && is_none("nr_dying_descendants") && !self.is_populated()
    }

    /// Living processes directly in it.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        processes(&self.path)
    }

    /// What is in this group is all of the run.
    pub(super) fn hold(&self) -> Arc<Hold> {
        Arc::clone(self.hold.get_or_init(|| Arc::new(self.open_hold())))
    }

    fn open_hold(&self) -> Hold {
        let open = |name: &str| open_to_write(&self.path.join(name));
        let read = |name: &str| KeptFile::open_to_read(self.path.join(name));
        let has_memory = self.has(Controller::Memory);
        // KERNEL: `cgroup.kill` came with 5.14.
        let kill = open("cgroup.kill");
        Hold {
            usage: read("cpu.stat").map(|file| Usage::Keyed(file, "usage_usec")),
            memory: has_memory.then(|| read("memory.current")).flatten(),
            // KERNEL: the line came with 5.18.
            kernel_memory: has_memory
                .then(|| read("memory.stat"))
                .flatten()
                .map(|file| KernelMemory::Keyed(file, "kernel")),
            process_limits: if kill.is_some() { None } else { open("pids.max") }.into_iter().collect(),
            freezer: open("cgroup.freeze").map(|file| (file, "1", "0")),
            members: Some((self.path.clone(), Vec::new())),
            shares: open("cpu.weight").map(|file| (file, WEIGHTS.0.to_owned())).into_iter().collect(),
            kill,
            ..Hold::default()
        }
    }

    /// Ends everything in it and waits until nothing is left.
    ///
    /// # Errors
    ///
    /// [`CgroupError::Populated`] when a process outlives SIGKILL.
    pub fn kill(&self) -> Result<(), CgroupError> {
        // ORDERING: read by the thread that writes.
        self.hold().is_ended.store(true, Ordering::Relaxed);
        kill_unified(&self.path)
    }

    /// Removes the empty group.
    ///
    /// # Errors
    ///
    /// [`CgroupError::Remove`] when something still lives in it.
    pub fn remove(mut self) -> Result<(), CgroupError> {
        // A program may have made groups of its own where it was let.
        let result = remove_empty(&self.path).or_else(|_| remove_tree(&self.path));
        self.is_removed = result.is_ok();
        result
    }
}

fn pressure(file: Option<&KeptFile>) -> Option<(u64, Source)> {
    pressure_ns(&file?.read().ok()?).map(|value| (value, Source::Cgroup2))
}

impl Drop for Leaf {
    fn drop(&mut self) {
        if !self.is_removed {
            let _ = remove_tree(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(controllers: &[Controller]) -> (tempfile::TempDir, Leaf) {
        let parent = tempfile::tempdir().unwrap();
        let leaf = Leaf::create(parent.path().join("run-1"), &controllers.iter().copied().collect()).unwrap();
        (parent, leaf)
    }

    /// Writes what the kernel makes with a group, and opens it.
    fn fill(leaf: &mut Leaf, files: &[(&str, &str)]) {
        for (name, text) in files {
            fs::write(leaf.path.join(name), text).unwrap();
        }
        leaf.files = Files::open(&leaf.path, &leaf.controllers);
    }

    #[test]
    fn limits_go_to_the_files_of_present_controllers_only() {
        let (_parent, leaf) = leaf(&[Controller::Pids]);
        fs::write(leaf.path().join("pids.max"), "max").unwrap();
        let limits = GroupLimits {
            process_count: Some(7),
            memory_bytes: Some(1),
            is_maximal_weight: true,
            ..GroupLimits::default()
        };
        leaf.apply(&limits).unwrap();
        // A real `pids.max` is replaced by a write, a plain file is overwritten from its start.
        assert!(fs::read_to_string(leaf.path().join("pids.max")).unwrap().starts_with('7'));
        fs::remove_dir_all(leaf.path()).unwrap();
    }

    #[test]
    fn a_sample_reads_what_is_there() {
        let (_parent, mut leaf) = leaf(&[Controller::Memory]);
        let files = [
            ("cpu.stat", "usage_usec 50\nuser_usec 40\nsystem_usec 10\n"),
            ("cpu.pressure", "some avg10=0 avg60=0 avg300=0 total=3\n"),
            ("memory.peak", "1048576\n"),
            ("memory.events", "oom 1\noom_kill 1\n"),
        ];
        fill(&mut leaf, &files);
        let sample = leaf.sample_after();
        assert_eq!(sample.usage_ns, Some((50_000, Source::Cgroup2)));
        assert_eq!(sample.cpu_pressure_ns, Some((3000, Source::Cgroup2)));
        assert_eq!(sample.memory_bytes(), Some(1_048_576));
        assert_eq!(sample.oom_kills(), Some(1));
        assert_eq!(sample.io_pressure_ns, None);
        fs::remove_dir_all(leaf.path()).unwrap();
    }

    #[test]
    fn only_an_empty_leaf_without_controllers_serves_again() {
        let serves_again = |controllers: &[Controller], descendants: u32, dying: u32, populated: u32| {
            let (_parent, mut leaf) = leaf(controllers);
            let counts =
                format!("nr_descendants {descendants}\nnr_subsys_cpu 1\nnr_dying_descendants {dying}\n");
            let events = format!("populated {populated}\nfrozen 0\n");
            fill(&mut leaf, &[("cgroup.stat", &counts), ("cgroup.events", &events)]);
            let answer = leaf.is_as_new();
            fs::remove_dir_all(leaf.path()).unwrap();
            answer
        };
        assert!(serves_again(&[], 0, 0, 0));
        assert!(!serves_again(&[Controller::Pids], 0, 0, 0));
        assert!(!serves_again(&[], 1, 0, 0));
        assert!(!serves_again(&[], 0, 1, 0));
        assert!(!serves_again(&[], 0, 0, 1));
    }

    #[test]
    fn a_leaf_that_was_ended_does_not_serve_again() {
        for end in [|leaf: &Leaf| leaf.kill().is_ok(), |leaf: &Leaf| leaf.hold().end()] {
            let (_parent, mut leaf) = leaf(&[]);
            let counts = "nr_descendants 0\nnr_subsys_cpu 1\nnr_dying_descendants 0\n";
            fill(&mut leaf, &[("cgroup.stat", counts), ("cgroup.events", "populated 0\nfrozen 0\n")]);
            assert!(leaf.is_as_new());
            let _ = end(&leaf);
            assert!(!leaf.is_as_new());
            fs::remove_dir_all(leaf.path()).unwrap();
        }
    }
}
