//! The driver of the service of orders (`workloads/java/service`): an open loop over HTTP/1.1.
//!
//! Requests are sent when they are due. Where all connections are awaiting an answer, a request waits for
//! the next that is free, and its latency goes on counting from the time it was due. Every answer is checked
//! against what the seed says must be in it.

mod check;
mod drawn;
mod flight;
mod plan;
mod pool;
mod request;
mod response;
mod summary;
mod table;

use std::path::{Path, PathBuf};

use crate::LoadError;
use crate::options::Given;
use crate::record::file_error;

use plan::Plan;
#[cfg(any(fuzzing, test))]
pub(crate) use response::ResponseReader;

/// Name of the records.
const REQUESTS: &str = "requests.bin";
/// Name of what the driver says of itself.
const SUMMARY: &str = "http.json";

/// `steelyard-load http`.
pub(crate) fn command(words: &[String]) -> Result<(), LoadError> {
    let mut given = Given::read(words, &[])?;
    let plan_path = PathBuf::from(given.need("--plan", "the file that describes the load")?);
    let out = PathBuf::from(given.need("--out", "the folder for the records")?);
    given.finish()?;
    let text = std::fs::read_to_string(&plan_path).map_err(|error| {
        LoadError::usage(format!("`--plan` `{}` cannot be read: {error}", plan_path.display()))
    })?;
    execute(&Plan::parse(&text)?, &out)
}

/// Sends the load of a plan, and leaves its records, also when a signal ends it.
fn execute(plan: &Plan, out: &Path) -> Result<(), LoadError> {
    std::fs::create_dir_all(out).map_err(|error| file_error(out, &error))?;
    let (requests, summary) = (out.join(REQUESTS), out.join(SUMMARY));
    for path in [&requests, &summary] {
        if path.exists() {
            return Err(file_error(path, &std::io::ErrorKind::AlreadyExists.into()));
        }
    }
    let flown = flight::fly(plan)?;
    let bytes = flown.table.bytes();
    std::fs::write(&requests, bytes).map_err(|error| file_error(&requests, &error))?;
    let text = format!("{:#}\n", summary::summarise(plan, &flown));
    std::fs::write(&summary, text).map_err(|error| file_error(&summary, &error))?;
    crate::signal::check()
}

#[cfg(test)]
mod tests;
