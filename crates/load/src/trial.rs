//! One trial of colocation: phases, settings, samples, and an end in which nothing is left.

mod applied;
mod conduct;
mod groups;
mod header;
mod plan;
mod samples;
mod scheduler;

use std::path::PathBuf;

pub(crate) use applied::Settings;
pub(crate) use plan::Side;

use crate::LoadError;
use crate::options::Given;

/// `steelyard-load trial`.
pub(crate) fn command(words: &[String]) -> Result<(), LoadError> {
    let mut given = Given::read(words, &["--allow-unthrottled"])?;
    let plan_path = PathBuf::from(given.need("--plan", "the file that describes the trial")?);
    let out = PathBuf::from(given.need("--out", "the folder for the records")?);
    let is_unthrottled_allowed = given.has_flag("--allow-unthrottled");
    given.finish()?;
    let text = std::fs::read_to_string(&plan_path).map_err(|error| {
        LoadError::usage(format!("`--plan` `{}` cannot be read: {error}", plan_path.display()))
    })?;
    let plan = plan::Plan::parse(&text)?;
    conduct::conduct(&plan, &text, &out, is_unthrottled_allowed)
}

/// Reads a plan, for the fuzz target.
#[cfg(any(fuzzing, test))]
pub(crate) fn parse_plan(text: &str) -> Result<(), LoadError> {
    plan::Plan::parse(text).map(|_| ())
}
