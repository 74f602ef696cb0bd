//! Whether this machine can have the class: said in plain words before anything is loaded.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::SchedulerError;

/// Functions of the kernel that the class calls, with their number of parameters.
///
/// KERNEL: Debian's 7.1.13 and 7.2.12 show a hidden parameter of some; the kernel then refuses every scheduler.
const FUNCTIONS: [(&str, usize); 12] = [
    ("scx_bpf_create_dsq", 2),
    ("scx_bpf_dsq_insert", 4),
    ("scx_bpf_dsq_insert_vtime", 5),
    ("scx_bpf_dsq_move_to_local", 1),
    ("scx_bpf_dsq_move", 4),
    ("scx_bpf_dsq_move_vtime", 4),
    ("scx_bpf_dsq_nr_queued", 1),
    ("scx_bpf_kick_cpu", 2),
    ("scx_bpf_pick_idle_cpu", 2),
    ("scx_bpf_reenqueue_local", 0),
    ("scx_bpf_select_cpu_dfl", 4),
    ("scx_bpf_task_cpu", 1),
];

fn misfit(name: &str, usual: usize, found: Option<usize>) -> Option<String> {
    match found {
        Some(found) if found == usual => None,
        Some(found) => Some(format!(
            "the kernel's type information gives `{name}` {found} parameters instead of {usual}: it was built with a defect, another kernel package may be without"
        )),
        None => Some(format!("the kernel has no function `{name}`: it is too old or too new for this class")),
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What is missing, one sentence each; empty: the class can be attached.
    pub reasons: Vec<String>,
    /// Release of the running kernel.
    pub kernel: String,
    /// Whether the kernel brings its type information.
    pub has_btf: bool,
    /// `CONFIG_SCHED_CLASS_EXT` of the running kernel: `y`, `n`, or `unknown`.
    pub config: String,
    /// The sched_ext scheduler that is attached now.
    pub attached: Option<String>,
}

impl Probe {
    /// Look at `/sys`, `/proc` and `/boot` below a given root; `parameters` gives the number of parameters of a
    /// function of the kernel, by its type information; `None`: leave that out, it takes a while.
    #[must_use]
    pub fn read(root: &Path, parameters: Option<&dyn Fn(&str) -> Option<usize>>) -> Self {
        let text = |path: &str| fs::read_to_string(root.join(path)).map(|text| text.trim().to_owned()).ok();
        let kernel = text("proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
        let has_btf = root.join("sys/kernel/btf/vmlinux").exists();
        let has_class = root.join("sys/kernel/sched_ext").exists();
        let config = match (has_class, text(&format!("boot/config-{kernel}"))) {
            (true, _) => "y",
            (false, Some(all)) if all.lines().any(|line| line == "CONFIG_SCHED_CLASS_EXT=y") => "y",
            (false, Some(_)) => "n",
            (false, None) => "unknown",
        };
        let mut reasons = Vec::new();
        if !has_class {
            let why =
                if config == "n" { "built without `CONFIG_SCHED_CLASS_EXT`" } else { "without sched_ext" };
            reasons.push(format!("the kernel {kernel} is {why} (`/sys/kernel/sched_ext` is missing)"));
        }
        if !has_btf {
            reasons.push(format!(
                "the kernel {kernel} brings no type information (`/sys/kernel/btf/vmlinux` is missing)"
            ));
        }
        if let (true, true, Some(parameters)) = (has_class, has_btf, parameters) {
            reasons
                .extend(FUNCTIONS.iter().filter_map(|(name, usual)| misfit(name, *usual, parameters(name))));
        }
        let attached = text("sys/kernel/sched_ext/root/ops").filter(|name| !name.is_empty());
        Self { reasons, kernel, has_btf, config: config.to_owned(), attached }
    }

    /// Whether nothing is missing.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Give the form for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "available": self.is_available(),
            "reasons": self.reasons,
            "kernel": self.kernel,
            "btf": self.has_btf,
            "config": self.config,
            "attached": self.attached,
        })
    }

    /// Refuse where another scheduler is attached: the kernel takes one at a time.
    ///
    /// # Errors
    ///
    /// [`SchedulerError::Failed`] naming it.
    pub fn require_free(&self) -> Result<(), SchedulerError> {
        let Some(name) = &self.attached else { return Ok(()) };
        let message = format!("a sched_ext scheduler is attached already: {name}");
        Err(SchedulerError::Failed { message, hint: "end that one first".to_owned() })
    }

    /// Turn what is missing into an error.
    ///
    /// # Errors
    ///
    /// [`SchedulerError::Capability`] naming everything that is missing.
    pub fn require(&self) -> Result<(), SchedulerError> {
        if self.is_available() {
            return Ok(());
        }
        let message = format!("the best-effort class cannot be attached here: {}", self.reasons.join("; "));
        let hint = "a kernel with CONFIG_SCHED_CLASS_EXT=y, or SCHED_IDLE and cpu.idle without the class";
        Err(SchedulerError::Capability { message, hint: hint.to_owned() })
    }
}

#[cfg(test)]
mod tests;
