//! What is asked of a freezing experiment.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::LoadError;
use crate::freeze::work::Kind;
use crate::options::Given;
use crate::part::Part;
use crate::settings::{Class, allowed_cpus};
use crate::trial::{Settings, Side};

/// SOURCE: own choice; a part is ready in milliseconds, in some seconds under emulation.
pub(super) const READY_LIMIT_MS: u64 = 120_000;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) seconds: u64,
    pub(super) cpus: Vec<usize>,
    pub(super) hogs: u32,
    pub(super) side: Side,
    pub(super) kinds: Vec<Kind>,
    pub(super) before_ms: u64,
    pub(super) after_limit_s: u64,
    pub(super) unit_iterations: u64,
    /// CPU time that each work takes alone, in units of about 1 ms.
    pub(super) units: u64,
    pub(super) scratch: PathBuf,
    pub(super) kills: u32,
}

fn kinds(text: &str) -> Result<Vec<Kind>, LoadError> {
    let find = |name: &str| Kind::FROZEN.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind);
    text.split(',')
        .map(|name| {
            find(name).ok_or_else(|| {
                LoadError::usage(format!(
                    "`--work` is `{text}`; allowed: some of cpu, tcp, file, joined by commas"
                ))
            })
        })
        .collect()
}

impl Plan {
    /// Reads the options.
    pub(super) fn read(given: &mut Given) -> Result<Self, LoadError> {
        let Some(seconds) = given.number("--seconds", 1, 86_400)? else {
            return Err(LoadError::usage("`--seconds` is missing: how long the CPUs are taken"));
        };
        let cpus = given.cpus("--cpus")?.unwrap_or_else(allowed_cpus);
        let before_ms = given.number("--before-ms", 100, 600_000)?.unwrap_or(1000);
        let classes: Vec<_> = Class::ALL.into_iter().filter(|(class, _)| *class != Class::Fifo).collect();
        let twice = u32::try_from(2 * cpus.len()).unwrap_or(u32::MAX);
        Ok(Self {
            seconds,
            hogs: given.count("--hogs", 1, twice)?,
            side: Side { class: given.choice("--class", &classes)?.or(Some(Class::Idle)), ..Side::default() },
            kinds: kinds(given.take("--work").as_deref().unwrap_or("cpu,tcp,file"))?,
            before_ms,
            after_limit_s: given.number("--after-limit-s", 1, 86_400)?.unwrap_or(120),
            unit_iterations: match given.number("--unit-iterations", 1, 1 << 50)? {
                Some(iterations) => iterations,
                None => crate::work::calibrate(1000).iterations,
            },
            // More than the time before can do, even on a CPU of its own.
            units: given.number("--units", 1, 1 << 32)?.unwrap_or(2 * before_ms),
            scratch: given.take("--scratch").map_or_else(std::env::temp_dir, PathBuf::from),
            kills: given.count("--kill", 0, 0)?,
            cpus,
        })
    }

    /// Starts the hogs, which wait for `go`. They are ordinary processes, as a service is.
    pub(super) fn start_hogs(&self, settings: &mut Settings) -> Result<Vec<Part>, LoadError> {
        (0..self.hogs)
            .map(|number| {
                let words = [
                    "park-work".to_owned(),
                    "--kind=hog".to_owned(),
                    format!("--unit-iterations={}", self.unit_iterations),
                ];
                let mut hog = Part::start(&format!("hog_{number}"), &words)?;
                settings.set_process(&format!("hog_{number}"), hog.pid(), &Side::default(), &self.cpus);
                hog.order("begin")?;
                hog.await_line("ready", READY_LIMIT_MS)?;
                Ok(hog)
            })
            .collect()
    }

    /// The record, with what is `more` of one kind of experiment.
    pub(super) fn facts(&self, settings: &Settings, is_right: bool, more: &Value) -> Value {
        let mut facts = json!({
            "format": "steelyard/park/1",
            "program": concat!("steelyard-load ", env!("CARGO_PKG_VERSION")),
            "is_right": is_right,
            "seconds": self.seconds,
            "cpus": self.cpus,
            "hogs": self.hogs,
            "class": self.side.class.map(Class::name),
            "units": self.units,
            "unit_iterations": self.unit_iterations,
            "sched_ext": std::fs::read_to_string("/sys/kernel/sched_ext/state").ok().map(|text| text.trim().to_owned()),
            "applied": settings.applied,
            "missing": settings.missing,
        });
        if let (Some(facts), Some(more)) = (facts.as_object_mut(), more.as_object()) {
            facts.extend(more.clone());
        }
        facts
    }
}
