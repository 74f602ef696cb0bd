use std::ffi::CString;
use std::path::{Path, PathBuf};

use steelyard_host::cgroup::{Controller, Groups};
use steelyard_model::{Isolation, Limits, Placement, RunSpec};

use super::schedule::Ungrouped;

/// Descriptor of a program's own measurements.
pub(super) const METRICS_DESCRIPTOR: i32 = 3;

/// Where programs are looked for when the environment has no `PATH`.
/// SOURCE: `_CS_PATH` of the C library.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Everything a child needs, computed once per batch so that nothing is left to do per run.
#[derive(Debug)]
pub(super) struct Blueprint {
    /// Where the program may be, in order.
    pub(super) candidates: Vec<CString>,
    pub(super) arguments: Vec<CString>,
    pub(super) environment: Vec<CString>,
    /// Directory of an unsandboxed program.
    pub(super) directory: PathBuf,
    /// Directory as the specification has it.
    pub(super) named_directory: Option<PathBuf>,
    pub(super) limits: Limits,
    pub(super) placement: Placement,
    /// What no control group limits here.
    pub(super) ungrouped: Ungrouped,
}

impl Blueprint {
    /// Reads a specification that was validated: it has a command and no NUL bytes.
    pub(super) fn of(spec: &RunSpec, groups: &Groups) -> Self {
        let program = spec.command.first().map_or("", String::as_str);
        let path = spec.environment.get("PATH").map_or(DEFAULT_PATH, String::as_str);
        let mut environment: Vec<CString> =
            spec.environment.iter().filter_map(|(name, value)| c_string(format!("{name}={value}"))).collect();
        if spec.own_metrics {
            environment.extend(c_string(format!("STEELYARD_METRICS_FD={METRICS_DESCRIPTOR}")));
        }
        Self {
            candidates: candidates(program, path),
            arguments: spec.command.iter().filter_map(|word| c_string(word.as_str())).collect(),
            environment,
            directory: spec.working_directory.clone().unwrap_or_else(|| Path::new("/").to_owned()),
            named_directory: spec.working_directory.clone(),
            limits: spec.limits.clone(),
            placement: spec.placement.clone(),
            ungrouped: Ungrouped {
                memory: !groups.has(Controller::Memory),
                // A bare program shares its user with others, whose processes would count too.
                processes: !groups.has(Controller::Pids) && matches!(spec.isolation, Isolation::Sandbox(_)),
            },
        }
    }
}

fn c_string(text: impl Into<Vec<u8>>) -> Option<CString> {
    CString::new(text).ok()
}

fn candidates(program: &str, path: &str) -> Vec<CString> {
    if program.contains('/') {
        return c_string(program).into_iter().collect();
    }
    path.split(':')
        .map(|folder| if folder.is_empty() { "." } else { folder })
        .filter_map(|folder| c_string(format!("{folder}/{program}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_name_is_looked_for_in_path() {
        let found = candidates("sh", "/a::/b");
        assert_eq!(found, [c"/a/sh", c"./sh", c"/b/sh"].map(CString::from));
    }

    #[test]
    fn a_path_is_taken_as_it_is() {
        assert_eq!(candidates("./x", "/a"), [CString::from(c"./x")]);
    }

    #[test]
    fn the_environment_is_complete_and_nothing_else() {
        let mut spec = RunSpec::of("r", ["x"]);
        spec.environment.insert("A".into(), "1".into());
        spec.own_metrics = true;
        let blueprint = Blueprint::of(&spec, &Groups::none());
        assert_eq!(blueprint.environment, [c"A=1", c"STEELYARD_METRICS_FD=3"].map(CString::from));
        assert!(blueprint.ungrouped.memory);
        assert!(!blueprint.ungrouped.processes);
    }
}
