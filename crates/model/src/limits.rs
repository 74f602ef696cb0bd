use serde::{Deserialize, Serialize};

/// Upper bounds on what a run may use; `None` is "no limit of ours".
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// CPU time of the whole process tree [ns].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time_ns: Option<u64>,
    /// Time between exec and exit of the program [ns].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_time_ns: Option<u64>,
    /// Peak memory of the whole process tree, page cache it caused included [bytes].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads alive at once in the tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_count: Option<u64>,
    /// Size of any one file the program writes [bytes].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<u64>,
    /// Standard output plus standard error [bytes]; the run is ended when it writes more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Open file descriptors per process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_file_count: Option<u64>,
    /// Stack of the first thread [bytes].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_bytes: Option<u64>,
    /// Size of the writable file system inside a sandbox [bytes].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

/// Which limit ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitKind {
    /// [`Limits::cpu_time_ns`].
    CpuTime,
    /// [`Limits::wall_time_ns`].
    WallTime,
    /// [`Limits::memory_bytes`].
    Memory,
    /// [`Limits::process_count`].
    ProcessCount,
    /// [`Limits::file_size_bytes`].
    FileSize,
    /// [`Limits::output_bytes`].
    Output,
}
