//! Whether this machine can have the class: said in plain words before anything is loaded.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::SchedulerError;
use crate::features::{Feature, Types, features, missing_functions};

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
    /// What the class uses of what not every kernel has; empty: the type information was not read.
    pub features: Vec<Feature>,
}

impl Probe {
    /// Look at `/sys`, `/proc` and `/boot` below a given root; `types` is the kernel's type information; `None`:
    /// leave that out, it takes a while.
    #[must_use]
    pub fn read(root: &Path, types: Option<&dyn Types>) -> Self {
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
        let types = types.filter(|_| has_class && has_btf);
        reasons.extend(types.map(missing_functions).unwrap_or_default());
        let features = types.map(features).unwrap_or_default();
        let attached = text("sys/kernel/sched_ext/root/ops").filter(|name| !name.is_empty());
        Self { reasons, kernel, has_btf, config: config.to_owned(), attached, features }
    }

    /// Whether nothing is missing.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Give the form for people where the class can be attached: what it uses of the kernel, a line each.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("the best-effort class can be attached (kernel {})\n", self.kernel);
        for feature in &self.features {
            let used = if feature.is_used { "used" } else { "not used" };
            text += &format!("  {:36} {used:9} {}\n", feature.name, feature.why);
        }
        text
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
            "features": self.features.iter().map(Feature::to_json).collect::<Vec<_>>(),
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
