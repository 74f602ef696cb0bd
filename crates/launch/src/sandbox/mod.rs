//! The sandbox: five namespaces, an allow-listed read-only root, no rights, a system call filter.
//!
//! Making namespaces costs more than a small run does, so they are made once, in a [`Pool`], and
//! kept by an idle first process. What a run can change is new for each run: its ipc namespace
//! and its writable files, which end with it.
//!
//! ```text
//! worker                      first process of the pool       child of a run
//! Pool::create ─────────────▶ builds the root, sleeps
//! enter_pid_namespace, move_in
//! clone ─────────────────────────────────────────────────────▶ prepare_child
//!                                                              (gate, limits, descriptors)
//!                                                              seal_child
//!                                                              exec
//! wait, sweep ──────────────▶ ends what is left
//! ```

mod bpf;
mod devices;
mod error;
mod etc;
mod filter;
mod forbidden;
#[cfg(fuzzing)]
pub mod fuzzing;
mod init;
mod keeping;
mod mounts;
mod namespaces;
mod paths;
mod pool;
mod proc;
mod refusals;
mod rights;
mod root;
mod rule;
mod scratch;
mod start;
mod tree;

pub use error::SandboxError;
pub use pool::{ChildView, Pool};
pub use refusals::Refusals;
