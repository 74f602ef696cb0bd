//! The parking experiment: best-effort processes whose CPUs are taken for a while, and who must finish all
//! the same, with the right answer and with their connections alive.

mod kill;
mod link;
mod parked;
mod work;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::LoadError;
use crate::clock::{now_ns, wait_until};
use crate::options::Given;
use crate::park::parked::Parked;
use crate::part::Part;
use crate::settings::{Class, allowed_cpus};
use crate::trial::{Settings, Side};

pub(crate) use work::{Kind, command as work_command};

/// SOURCE: own choice; a part is ready in milliseconds, in some seconds under emulation.
const READY_LIMIT_MS: u64 = 120_000;
/// SOURCE: own choice: fine enough to see a heartbeat.
const LOOK_NS: u64 = 100_000_000;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Park {
    seconds: u64,
    cpus: Vec<usize>,
    hogs: u32,
    side: Side,
    kinds: Vec<Kind>,
    before_ms: u64,
    after_limit_s: u64,
    unit_iterations: u64,
    /// CPU time that each work takes alone, in units of about 1 ms.
    units: u64,
    scratch: PathBuf,
    kills: u32,
}

/// `steelyard-load park`.
pub(crate) fn command(words: &[String]) -> Result<(), LoadError> {
    let mut given = Given::read(words, &["--json"])?;
    let Some(seconds) = given.number("--seconds", 1, 86_400)? else {
        return Err(LoadError::usage("`--seconds` is missing: how long the CPUs are taken"));
    };
    let cpus = given.cpus("--cpus")?.unwrap_or_else(allowed_cpus);
    let before_ms = given.number("--before-ms", 100, 600_000)?.unwrap_or(1000);
    let classes: Vec<_> = Class::ALL.into_iter().filter(|(class, _)| *class != Class::Fifo).collect();
    let twice = u32::try_from(2 * cpus.len()).unwrap_or(u32::MAX);
    let park = Park {
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
    };
    let out = given.take("--out").map(PathBuf::from);
    given.has_flag("--json");
    given.finish()?;
    let found = if park.kills > 0 { kill::execute(&park)? } else { park.execute()? };
    let text = format!("{found:#}");
    match &out {
        None => crate::control::say(&text)?,
        Some(path) => {
            std::fs::write(path, text + "\n").map_err(|error| crate::record::file_error(path, &error))?;
        }
    }
    match found["is_right"].as_bool() {
        Some(true) => Ok(()),
        _ => Err(LoadError::Failed(
            "not all parked work has ended as it should; the answer says which".to_owned(),
        )),
    }
}

fn kinds(text: &str) -> Result<Vec<Kind>, LoadError> {
    let find = |name: &str| Kind::PARKED.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind);
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

impl Park {
    /// Starts the hogs, which wait for `go`. They are ordinary processes, as a service is.
    fn start_hogs(&self, settings: &mut Settings) -> Result<Vec<Part>, LoadError> {
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

    fn execute(&self) -> Result<Value, LoadError> {
        // Every kind of work has the same answer; it is known before anything else runs.
        let expected = crate::work::work(work::START, self.units * self.unit_iterations);
        let mut settings = Settings::default();
        let mut hogs = self.start_hogs(&mut settings)?;
        let mut parked = self
            .kinds
            .iter()
            .map(|kind| Parked::start(self, *kind, &mut settings))
            .collect::<Result<Vec<_>, _>>()?;
        parked.iter_mut().try_for_each(|parked| parked.begin(self.units))?;
        self.look(&mut parked, now_ns() + self.before_ms * 1_000_000)?;
        parked.iter_mut().for_each(Parked::note_before);
        let park_start_ns = now_ns();
        hogs.iter_mut().try_for_each(|hog| hog.order("go"))?;
        self.look(&mut parked, park_start_ns + self.seconds * 1_000_000_000)?;
        parked.iter_mut().for_each(Parked::note_parked);
        let park_end_ns = now_ns();
        drop(hogs);
        let limit_ns = park_end_ns + self.after_limit_s * 1_000_000_000;
        while parked.iter().any(|parked| !parked.is_finished()) && now_ns() < limit_ns {
            self.look(&mut parked, now_ns() + LOOK_NS / 10)?;
        }
        let works = parked
            .into_iter()
            .map(|parked| parked.finish(self, expected, park_end_ns))
            .collect::<Result<Vec<_>, _>>()?;
        let is_right = works.iter().all(|work| work["is_right"] == true);
        Ok(self.facts(
            &settings,
            is_right,
            &json!({
                "park_start_ns": park_start_ns, "park_end_ns": park_end_ns, "works": works,
            }),
        ))
    }

    /// Looks at everything until a stamp.
    fn look(&self, parked: &mut [Parked], until_ns: u64) -> Result<(), LoadError> {
        while now_ns() < until_ns {
            wait_until(until_ns.min(now_ns() + LOOK_NS), 0);
            crate::signal::check()?;
            parked.iter_mut().try_for_each(|parked| parked.look(self.units))?;
        }
        Ok(())
    }

    fn facts(&self, settings: &Settings, is_right: bool, more: &Value) -> Value {
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
