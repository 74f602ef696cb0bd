//! `calibrate`: the launcher's own error on this host.

use std::io::Write;

use serde::Serialize;
use steelyard_launch::calibration::{CalibrationRun, calibrate};
use steelyard_launch::guard::{Role, stand_guard};
use steelyard_launch::{Launcher, LauncherOptions, NoControl};
use steelyard_model::{Isolation, Metric, RunSpec};

use super::super::arguments::CalibrateOptions;

#[derive(Debug, Serialize)]
struct Table {
    isolation: &'static str,
    cgroup: String,
    runs: usize,
    wall_error_ns: Spread,
    cpu_error_ns: Spread,
    overhead_ns: Spread,
    launch_of_true_ns: Spread,
}

#[derive(Debug, Serialize)]
struct Spread {
    mean: f64,
    sd: f64,
    median: i64,
    p95: i64,
    largest: i64,
}

pub(crate) fn execute(options: LauncherOptions, wanted: &CalibrateOptions) -> anyhow::Result<i32> {
    if let Role::Guard { exit_code } = stand_guard()? {
        return Ok(exit_code);
    }
    let mut launcher = Launcher::start(&LauncherOptions { is_guarded: true, ..options })?;
    let runs = calibrate(&mut launcher, &wanted.isolation, wanted.duration_ns, wanted.runs)?;
    let totals = launch_true(&mut launcher, &wanted.isolation, wanted.runs)?;
    let of_runs = |pick: fn(&CalibrationRun) -> i64| Spread::of(runs.iter().map(pick).collect());
    let found = Table {
        isolation: if wanted.isolation == Isolation::Bare { "bare" } else { "sandbox" },
        cgroup: launcher.cgroup().to_owned(),
        runs: runs.len(),
        wall_error_ns: of_runs(|run| run.wall_error_ns),
        cpu_error_ns: of_runs(|run| run.cpu_error_ns),
        overhead_ns: of_runs(|run| run.overhead_ns),
        launch_of_true_ns: Spread::of(totals),
    };
    let mut text = serde_json::to_vec(&found)?;
    text.push(b'\n');
    std::io::stdout().write_all(&text)?;
    Ok(0)
}

fn launch_true(launcher: &mut Launcher, isolation: &Isolation, runs: u32) -> anyhow::Result<Vec<i64>> {
    let mut spec = RunSpec::of("true", ["true"]);
    spec.isolation = isolation.clone();
    spec.iterations = runs;
    launcher.prepare(&spec)?;
    let mut found = Vec::new();
    launcher.execute(&mut NoControl, &mut |report| {
        found.extend(report.outcome.value(Metric::TotalNs).and_then(|value| i64::try_from(value).ok()));
    })?;
    // The first one was prepared before it was asked for.
    Ok(found.split_off(1.min(found.len())))
}

impl Spread {
    #[expect(clippy::cast_precision_loss, reason = "errors of some microseconds are exact in a double")]
    fn of(mut values: Vec<i64>) -> Self {
        values.sort_unstable();
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<i64>() as f64 / count;
        let squares: f64 = values.iter().map(|value| (*value as f64 - mean).powi(2)).sum();
        let at =
            |percent: usize| values.get(values.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0);
        Self {
            mean,
            sd: (squares / (count - 1.0).max(1.0)).sqrt(),
            median: at(50),
            p95: at(95),
            largest: at(100),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_that_of_the_sample() {
        let spread = Spread::of(vec![3, 1, 2]);
        assert!((spread.mean - 2.0).abs() < 1e-12);
        assert!((spread.sd - 1.0).abs() < 1e-12);
        assert_eq!((spread.median, spread.largest), (2, 3));
    }
}
