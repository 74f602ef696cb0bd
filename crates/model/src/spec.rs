use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Limits, Placement, SandboxSpec, SchedulingPolicy, Source};

/// Schema name of [`RunSpec`].
pub const SPEC_SCHEMA: &str = "steelyard/run-spec/1";

/// One run, or a batch of runs of the same command one after the other.
///
/// ```
/// use steelyard_model::RunSpec;
/// let spec = RunSpec::of("r1", ["/bin/true"]);
/// assert_eq!(spec.iterations, 1);
/// spec.validate()?;
/// # Ok::<(), steelyard_model::SpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// [`SPEC_SCHEMA`].
    pub schema: String,
    /// Chosen by the caller; every outcome carries it with its iteration.
    pub id: String,
    /// Program and arguments. The program is a path, or a name looked up in `PATH` of
    /// [`environment`](Self::environment).
    pub command: Vec<String>,
    /// The complete environment: nothing is inherited.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Directory the program starts in; `None` is `/` (sandbox: its writable `/box`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<PathBuf>,
    /// Standard input.
    #[serde(default)]
    pub standard_input: InputStream,
    /// Standard output.
    #[serde(default)]
    pub standard_output: OutputStream,
    /// Standard error.
    #[serde(default)]
    pub standard_error: OutputStream,
    /// Isolation by the launcher itself.
    #[serde(default)]
    pub isolation: Isolation,
    /// Limits.
    #[serde(default)]
    pub limits: Limits,
    /// CPUs, scheduling class, weight.
    #[serde(default)]
    pub placement: Placement,
    /// Further perf counters by name (`instructions`, `cache-misses`, `page-faults`, ...).
    #[serde(default)]
    pub counters: Vec<String>,
    /// Offer the program a descriptor for its own measurements (`STEELYARD_METRICS_FD`).
    #[serde(default)]
    pub own_metrics: bool,
    /// Use this source for the stamps of exec and exit, or fail; `None` takes the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp_source: Option<Source>,
    /// Number of launches, at least 1.
    #[serde(default = "one")]
    pub iterations: u32,
    /// First iteration's number.
    #[serde(default = "one")]
    pub first_iteration: u32,
    /// Parallel workers released together before their first iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barrier: Option<BarrierSpec>,
}

const fn one() -> u32 {
    1
}

/// A rendezvous of several launchers on one kernel: a file of at least 8 bytes on a memory file
/// system, zeroed by the caller, mapped by all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BarrierSpec {
    /// The shared file.
    pub path: PathBuf,
    /// Number of launchers that meet.
    pub parties: u32,
    /// Give up after this time [ns] with status `launcher_failed`.
    pub timeout_ns: u64,
}

/// Isolation by the launcher.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[non_exhaustive]
pub enum Isolation {
    /// The launcher's own namespaces and rights; a cgroup where there is one.
    #[default]
    Bare,
    /// [`SandboxSpec`].
    Sandbox(SandboxSpec),
}

/// Standard input of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "from")]
#[non_exhaustive]
pub enum InputStream {
    /// `/dev/null`.
    #[default]
    Null,
    /// A file, opened again for each iteration.
    File {
        /// Host path.
        path: PathBuf,
    },
}

/// Standard output or error of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "to")]
#[non_exhaustive]
pub enum OutputStream {
    /// Read and thrown away, but counted against the output limit.
    #[default]
    Discard,
    /// The first `limit_bytes` are returned in the outcome; the rest is counted.
    Capture {
        /// Bytes kept.
        limit_bytes: u64,
    },
    /// Appended to a file, across iterations.
    File {
        /// Host path; created when missing.
        path: PathBuf,
    },
}

/// Why a [`RunSpec`] cannot be executed as written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// Another schema or version.
    #[error("schema `{found}` is not `{SPEC_SCHEMA}`")]
    Schema {
        /// What was there.
        found: String,
    },
    /// A field has a value outside its range.
    #[error("`{field}` is {found}; allowed: {allowed}")]
    Value {
        /// Path of the field.
        field: &'static str,
        /// What was there.
        found: String,
        /// The allowed values in words.
        allowed: &'static str,
    },
}

impl RunSpec {
    /// A specification with every default and the given command.
    pub fn of<I, S>(id: impl Into<String>, command: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Self {
            schema: SPEC_SCHEMA.into(),
            id: id.into(),
            command: command.into_iter().map(Into::into).collect(),
            environment: BTreeMap::new(),
            working_directory: None,
            standard_input: InputStream::default(),
            standard_output: OutputStream::default(),
            standard_error: OutputStream::default(),
            isolation: Isolation::default(),
            limits: Limits::default(),
            placement: Placement::default(),
            counters: Vec::new(),
            own_metrics: false,
            stamp_source: None,
            iterations: 1,
            first_iteration: 1,
            barrier: None,
        }
    }

    /// Checks every rule that needs no host.
    ///
    /// # Errors
    ///
    /// [`SpecError`] for the first field that breaks a rule.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.schema != SPEC_SCHEMA {
            return Err(SpecError::Schema { found: self.schema.clone() });
        }
        if self.command.first().is_none_or(String::is_empty) {
            return Err(value("command", "empty", "a program and its arguments"));
        }
        if self.command.iter().any(|word| word.contains('\0')) {
            return Err(value("command", "a word with a NUL byte", "words without NUL bytes"));
        }
        if self.environment.iter().any(|(k, v)| k.is_empty() || k.contains(['=', '\0']) || v.contains('\0')) {
            return Err(value("environment", "a malformed entry", "non-empty names without `=` or NUL"));
        }
        if self.iterations == 0 {
            return Err(value("iterations", "0", "1 or more"));
        }
        if self.barrier.as_ref().is_some_and(|barrier| barrier.parties == 0) {
            return Err(value("barrier.parties", "0", "1 or more"));
        }
        if self.placement.cpus.as_ref().is_some_and(Vec::is_empty) {
            return Err(value("placement.cpus", "an empty list", "at least one CPU, or absent"));
        }
        if let SchedulingPolicy::Fifo { priority } = self.placement.policy {
            if !(1..=99).contains(&priority) {
                return Err(value("placement.policy.priority", &priority.to_string(), "1 to 99"));
            }
            if self.limits.wall_time_ns.is_none() {
                return Err(value("limits.wall_time_ns", "absent", "a limit, since the class is real-time"));
            }
        }
        match self.stamp_source {
            None | Some(Source::Tracepoint | Source::PerfRecord | Source::Ptrace | Source::SharedMemory) => {
                Ok(())
            }
            Some(_) => Err(value(
                "stamp_source",
                "not a stamp",
                "`tracepoint`, `perf_record`, `ptrace`, `shared_memory`",
            )),
        }
    }
}

fn value(field: &'static str, found: &str, allowed: &'static str) -> SpecError {
    SpecError::Value { field, found: found.into(), allowed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_spec_survives_json() {
        let spec = RunSpec::of("r", ["/bin/true", "x"]);
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<RunSpec>(&text).unwrap(), spec);
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let text = r#"{"schema":"steelyard/run-spec/1","id":"r","command":["x"],"wall":3}"#;
        assert!(serde_json::from_str::<RunSpec>(text).unwrap_err().to_string().contains("wall"));
    }

    #[test]
    fn a_real_time_class_needs_a_wall_limit() {
        let mut spec = RunSpec::of("r", ["x"]);
        spec.placement.policy = SchedulingPolicy::Fifo { priority: 10 };
        assert!(spec.validate().unwrap_err().to_string().contains("wall_time_ns"));
    }

    #[test]
    fn an_empty_command_is_refused() {
        let spec = RunSpec::of("r", Vec::<String>::new());
        assert!(spec.validate().is_err());
    }
}
