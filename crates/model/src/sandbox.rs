use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Steelyard's own sandbox: five namespaces (pid, mount, network, ipc, uts), a cgroup, a system
/// call filter, no privileges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSpec {
    /// What the program sees as `/`.
    pub root: RootView,
    /// Further host paths shown read-only at the same place.
    pub read_only: Vec<PathBuf>,
    /// Host paths shown writable at the same place. What is written there is kept.
    pub writable: Vec<PathBuf>,
    /// Network inside the sandbox.
    pub network: NetworkView,
    /// User the program runs as; `None` picks 60000 + worker, which no account uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<u32>,
}

/// What a sandboxed program sees as its root file system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "view")]
#[non_exhaustive]
pub enum RootView {
    /// The host's programs and libraries, read-only, by an allow-list (`/usr`, `/bin`, `/lib*`,
    /// harmless parts of `/etc`); home directories, `/run`, `/var` and secrets are absent.
    #[default]
    Host,
    /// An own root file system, read-only.
    Directory {
        /// Host path of the tree.
        path: PathBuf,
    },
}

/// Network a sandboxed program sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NetworkView {
    /// An empty network namespace: not even loopback is up.
    #[default]
    None,
    /// The host's network. Lowers the isolation; recorded.
    Host,
}
