//! What recording costs: one stamp, and a run of 20 000 messages through shared memory.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::clock::{as_f64, measure_stamps, now_ns};
use crate::plant::Draws;
use crate::{CommError, Operation, Plan, Step};

/// Messages of the run unless another number is asked for, with sizes of 10^U(0, DECADES) bytes.
pub(crate) const MESSAGES: u64 = 20_000;
const DECADES: f64 = 7.0;
const SEED: u64 = 1;

/// Executes the run by this program itself and measures it from the first line of the plan to the last record.
pub(crate) fn measure(cpus: Option<&str>, messages: u64) -> Result<Value, CommError> {
    let folder = Scratch::create()?;
    let plan = plan(messages);
    let path = folder.0.join("plan.csv");
    let failed = |error| CommError::system(format!("writing `{}`", path.display()), error);
    std::fs::write(&path, plan.to_text()).map_err(failed)?;
    let out = folder.0.join("trace");
    let mut words = vec!["--transport", "shm", "--plan", text(&path)?, "--out", text(&out)?];
    if let Some(cpus) = cpus {
        words.extend(["--cpus", cpus]);
    }
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let start_ns = now_ns();
    crate::launch::launch(&crate::options::Options::parse(&words)?)?;
    let elapsed_ns = now_ns() - start_ns;
    let stamps = measure_stamps();
    let bytes: u64 = plan.steps().iter().map(|step| u64::from(step.size)).sum();
    Ok(json!({
        "stamp_cost_ns": stamps.cost_ns,
        "stamp_resolution_ns": stamps.resolution_ns,
        "messages": messages,
        "bytes": bytes,
        "elapsed_s": as_f64(elapsed_ns) * 1e-9,
    }))
}

fn plan(messages: u64) -> Plan {
    let mut draws = Draws::new(SEED);
    let step = |_| {
        let size = 10_f64.powf(DECADES * draws.uniform());
        Step { operation: Operation::Stream, size: to_bytes(size) }
    };
    Plan::from_steps((0..messages).map(step).collect())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 10^7")]
const fn to_bytes(size: f64) -> u32 {
    size as u32
}

fn text(path: &Path) -> Result<&str, CommError> {
    path.to_str().ok_or_else(|| {
        CommError::Unusable(format!("the folder `{}` for temporary files is not UTF-8 text", path.display()))
    })
}

/// A folder that is removed with everything in it.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn create() -> Result<Self, CommError> {
        let name = format!("steelyard-comm-{}-{}", std::process::id(), now_ns());
        let path = std::env::temp_dir().join(name);
        let failed = |error| CommError::system(format!("making `{}`", path.display()), error);
        std::fs::create_dir(&path).map_err(failed)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_cover_every_decade_evenly() {
        let plan = plan(MESSAGES);
        assert_eq!(plan.len(), MESSAGES);
        for decade in 0..7 {
            let (low, high) = (10_u32.pow(decade), 10_u32.pow(decade + 1));
            let count = plan.steps().iter().filter(|step| (low..high).contains(&step.size)).count();
            // A seventh of 20 000 is 2857; 6 standard deviations are 297.
            assert!(count.abs_diff(20_000 / 7) < 297, "{decade}: {count}");
        }
    }

    #[test]
    fn a_scratch_folder_does_not_stay() {
        let folder = Scratch::create().unwrap();
        let path = folder.0.clone();
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.exists());
    }
}
