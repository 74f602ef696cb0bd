//! Other layouts than the host's, by hiding hierarchies in a mount namespace of the launcher's own.

use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use steelyard_host::cgroup::{Layout as Found, LayoutKind};

use super::program;

const ROLE: &str = "STEELYARD_TEST_LAUNCHER";

/// What the launcher of a case sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Everything the host has.
    Whole,
    /// The version 2 tree is hidden.
    OnlyV1,
    /// Everything is hidden.
    Nothing,
}

impl Layout {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Whole => found().as_str(),
            Self::OnlyV1 => "v1",
            Self::Nothing => "none",
        }
    }

    /// Layouts that can be shown on this host.
    pub(crate) fn shown_here() -> Vec<Self> {
        let is_root = nix::unistd::geteuid().is_root();
        match (found(), is_root) {
            (LayoutKind::Hybrid, true) => vec![Self::Whole, Self::OnlyV1, Self::Nothing],
            (LayoutKind::Unified | LayoutKind::Legacy, true) => vec![Self::Whole, Self::Nothing],
            _ => vec![Self::Whole],
        }
    }

    /// Whether something accounts and limits memory and processes.
    pub(crate) fn has_groups(self) -> bool {
        self.name() != "none"
    }

    /// Environment that makes this executable a launcher with this view.
    pub(crate) fn role(self) -> (&'static str, &'static str) {
        (
            ROLE,
            match self {
                Self::Whole => "whole",
                Self::OnlyV1 => "v1",
                Self::Nothing => "none",
            },
        )
    }
}

fn found() -> LayoutKind {
    Found::discover(Path::new("/")).unwrap().kind()
}

/// Fails when the launcher on this host uses another layout than `STEELYARD_EXPECT_CGROUP` says.
pub(crate) fn expected() -> Result<(), String> {
    let Ok(wanted) = std::env::var("STEELYARD_EXPECT_CGROUP") else { return Ok(()) };
    let used = super::client::Serve::start(Layout::Whole).hello.cgroup.clone();
    if used == wanted { Ok(()) } else { Err(format!("STEELYARD_EXPECT_CGROUP is {wanted}, used is {used}")) }
}

/// Becomes the launcher where the environment says so.
pub(crate) fn become_launcher_if_asked() {
    let Ok(view) = std::env::var(ROLE) else { return };
    if view != "whole" {
        hide(&view);
    }
    let code = program::main();
    // `ExitCode` cannot be read, and `main` of this file returns nothing: hand it to the runtime.
    std::process::Termination::report(code).exit_process_now();
}

trait ExitNow {
    fn exit_process_now(self) -> !;
}

impl ExitNow for std::process::ExitCode {
    fn exit_process_now(self) -> ! {
        let code = (0..=u8::MAX).find(|code| Self::from(*code) == self).unwrap_or(u8::MAX);
        std::process::exit(i32::from(code))
    }
}

fn hide(view: &str) {
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
    let layout = Found::discover(Path::new("/")).unwrap();
    let legacy = layout.v1.iter().filter(|_| view == "none");
    for hierarchy in layout.v2.iter().chain(legacy) {
        umount2(&hierarchy.mount, MntFlags::MNT_DETACH).unwrap();
    }
}
