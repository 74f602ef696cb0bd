//! The freezing experiment: best-effort processes whose CPUs are taken for a while, and who must finish all
//! the same, with the right answer and with their connections alive.

mod frozen;
mod kill;
mod link;
mod plan;
mod work;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::LoadError;
use crate::clock::{now_ns, wait_until};
use crate::freeze::frozen::Frozen;
use crate::freeze::plan::Plan;
use crate::options::Given;
use crate::trial::Settings;

pub(crate) use work::command as work_command;

/// SOURCE: own choice: fine enough to see a heartbeat.
const LOOK_NS: u64 = 100_000_000;

/// `steelyard-load park`.
pub(crate) fn command(words: &[String]) -> Result<(), LoadError> {
    let mut given = Given::read(words, &["--json"])?;
    let plan = Plan::read(&mut given)?;
    let out = given.take("--out").map(PathBuf::from);
    given.has_flag("--json");
    given.finish()?;
    let found = if plan.kills > 0 { kill::run(&plan)? } else { run(&plan)? };
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
            "not all frozen work has ended as it should; the answer says which".to_owned(),
        )),
    }
}

/// Lets the work begin, takes its CPUs for a while, and sees that it ends.
fn run(plan: &Plan) -> Result<Value, LoadError> {
    // Every kind of work has the same answer; it is known before anything else runs.
    let expected = crate::work::work(work::START, plan.units * plan.unit_iterations);
    let mut settings = Settings::default();
    let mut hogs = plan.start_hogs(&mut settings)?;
    let mut frozen = plan
        .kinds
        .iter()
        .map(|kind| Frozen::start(plan, *kind, &mut settings))
        .collect::<Result<Vec<_>, _>>()?;
    frozen.iter_mut().try_for_each(|frozen| frozen.begin(plan.units))?;
    look(plan, &mut frozen, now_ns() + plan.before_ms * 1_000_000)?;
    frozen.iter_mut().for_each(Frozen::note_before);
    let freeze_start_ns = now_ns();
    hogs.iter_mut().try_for_each(|hog| hog.order("go"))?;
    look(plan, &mut frozen, freeze_start_ns + plan.seconds * 1_000_000_000)?;
    frozen.iter_mut().for_each(Frozen::note_frozen);
    let freeze_end_ns = now_ns();
    drop(hogs);
    let limit_ns = freeze_end_ns + plan.after_limit_s * 1_000_000_000;
    while frozen.iter().any(|frozen| !frozen.is_finished()) && now_ns() < limit_ns {
        look(plan, &mut frozen, now_ns() + LOOK_NS / 10)?;
    }
    let works = frozen
        .into_iter()
        .map(|frozen| frozen.finish(plan, expected, freeze_end_ns))
        .collect::<Result<Vec<_>, _>>()?;
    let is_right = works.iter().all(|work| work["is_right"] == true);
    Ok(plan.facts(
        &settings,
        is_right,
        &json!({
            "park_start_ns": freeze_start_ns, "park_end_ns": freeze_end_ns, "works": works,
        }),
    ))
}

/// Looks at everything until a stamp.
fn look(plan: &Plan, frozen: &mut [Frozen], until_ns: u64) -> Result<(), LoadError> {
    while now_ns() < until_ns {
        wait_until(until_ns.min(now_ns() + LOOK_NS), 0);
        crate::signal::check()?;
        frozen.iter_mut().try_for_each(|frozen| frozen.look(plan.units))?;
    }
    Ok(())
}
