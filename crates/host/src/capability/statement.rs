use serde::{Deserialize, Serialize};

/// Something this host can do, or cannot and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// Stable dotted name (`perf.exec-records`, `namespace.user`).
    pub name: String,
    /// What it is good for, in a few words.
    pub purpose: String,
    /// Whether it can be used by this process.
    pub available: bool,
    /// What was tried or read to know.
    pub mechanism: String,
    /// What was seen: the variant in use, or why it is not available.
    pub reason: String,
    /// Command that makes it available, where one is known.
    pub repair: Option<String>,
}

impl Capability {
    pub(super) fn new(name: &str, purpose: &str, mechanism: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            purpose: purpose.to_owned(),
            available: false,
            mechanism: mechanism.into(),
            reason: String::new(),
            repair: None,
        }
    }

    pub(super) fn present(mut self, seen: impl Into<String>) -> Self {
        self.available = true;
        self.reason = seen.into();
        self
    }

    pub(super) fn absent(mut self, reason: impl Into<String>, repair: Option<&str>) -> Self {
        self.reason = reason.into();
        self.repair = repair.map(str::to_owned);
        self
    }
}
