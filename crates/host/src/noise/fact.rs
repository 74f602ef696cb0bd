use serde::{Deserialize, Serialize};

use crate::{Activity, HostRoot, KernelConfig, Topology};

/// One property of the host that can disturb measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseFact {
    /// Stable name (`aslr`, `governor`).
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Judgement.
    pub verdict: Verdict,
    /// What was seen.
    pub seen: String,
    /// Why it matters, one sentence.
    pub why: String,
    /// Command that repairs it.
    pub repair: Option<String>,
}

/// Judgement on a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// Harmless as it is.
    Pass,
    /// May be seen in fine measurements.
    Caution,
    /// Makes ordinary measurements untrustworthy.
    Fail,
    /// Could not be established.
    Unknown,
}

impl NoiseFact {
    pub(super) fn new(name: &str, title: &str, why: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            verdict: Verdict::Unknown,
            seen: String::new(),
            why: why.to_owned(),
            repair: None,
        }
    }

    fn judged(mut self, verdict: Verdict, seen: impl Into<String>) -> Self {
        self.verdict = verdict;
        self.seen = seen.into();
        self
    }

    pub(super) fn pass(self, seen: impl Into<String>) -> Self {
        self.judged(Verdict::Pass, seen)
    }

    pub(super) fn caution(self, seen: impl Into<String>) -> Self {
        self.judged(Verdict::Caution, seen)
    }

    pub(super) fn fail(self, seen: impl Into<String>) -> Self {
        self.judged(Verdict::Fail, seen)
    }

    pub(super) fn unknown(self, seen: impl Into<String>) -> Self {
        self.judged(Verdict::Unknown, seen)
    }

    pub(super) fn repaired_by(mut self, command: impl Into<String>) -> Self {
        self.repair = Some(command.into());
        self
    }
}

/// What the judgements need beyond single files.
pub(crate) struct Surroundings<'a> {
    pub(crate) root: &'a HostRoot,
    pub(crate) config: &'a KernelConfig,
    pub(crate) topology: Option<&'a Topology>,
    pub(crate) activity: Option<&'a Activity>,
}

/// The chosen word of a file like `always [madvise] never`.
pub(crate) fn chosen(text: &str) -> &str {
    text.split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .unwrap_or_else(|| text.trim())
}
