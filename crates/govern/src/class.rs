use serde::Serialize;
use steelyard_host::HostRoot;

/// Begin of the name that the class registers with the kernel.
const NAME: &str = "steelyard";

/// Whether the scheduling class is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "name")]
pub enum ClassState {
    /// The kernel has no `sched_ext`.
    Unsupported,
    /// The kernel has it, and nothing is loaded.
    Inactive,
    /// Somebody else's scheduler is loaded; its name.
    Foreign(String),
    /// Steelyard's class schedules; its name.
    Active(String),
}

/// Looks which scheduler is loaded.
#[must_use]
pub fn read_class(root: &HostRoot) -> ClassState {
    let Some(state) = root.text("/sys/kernel/sched_ext/state") else { return ClassState::Unsupported };
    if state != "enabled" {
        return ClassState::Inactive;
    }
    let name = root.text("/sys/kernel/sched_ext/root/ops").unwrap_or_default();
    if name.starts_with(NAME) { ClassState::Active(name) } else { ClassState::Foreign(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(files: &[(&str, &str)]) -> ClassState {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join("sys/kernel/sched_ext").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        read_class(&HostRoot::at(folder.path()))
    }

    #[test]
    fn only_an_enabled_scheduler_of_ours_is_the_class() {
        assert_eq!(state(&[]), ClassState::Unsupported);
        assert_eq!(state(&[("state", "disabled\n")]), ClassState::Inactive);
        assert_eq!(state(&[("state", "disabling\n"), ("root/ops", "steelyard\n")]), ClassState::Inactive);
        let theirs = state(&[("state", "enabled\n"), ("root/ops", "rusty\n")]);
        assert_eq!(theirs, ClassState::Foreign("rusty".to_owned()));
        let ours = state(&[("state", "enabled\n"), ("root/ops", "steelyard_be\n")]);
        assert_eq!(ours, ClassState::Active("steelyard_be".to_owned()));
    }
}
