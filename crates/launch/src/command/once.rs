//! `once`: one specification in, one outcome per iteration out.

use std::io::{Read, Write};

use anyhow::Context;
use steelyard_launch::guard::{LAUNCHER_FAILED, Role, stand_guard};
use steelyard_launch::{Launcher, LauncherOptions, NoControl, Report};
use steelyard_model::{RunSpec, RunStatus};

const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

pub(crate) fn execute(options: LauncherOptions) -> anyhow::Result<i32> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .context("cannot read the specification from standard input")?;
    let spec: RunSpec =
        serde_json::from_str(&text).context("the specification on standard input is not a `RunSpec`")?;
    spec.validate()?;
    if let Role::Guard { exit_code } = stand_guard()? {
        return Ok(exit_code);
    }
    let mut launcher = Launcher::start(&LauncherOptions { is_guarded: true, ..options })?;
    launcher.prepare(&spec)?;
    let mut code = 0;
    let mut written = Ok(());
    launcher.execute(&mut NoControl, &mut |report| {
        code = code.max(exit_code(&report));
        if written.is_ok() {
            written = write_line(&report);
        }
    })?;
    written.context("cannot write the outcome to standard output")?;
    Ok(code)
}

fn write_line(report: &Report) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(&report.outcome)?;
    line.push(b'\n');
    let mut output = std::io::stdout().lock();
    output.write_all(&line)?;
    Ok(output.flush()?)
}

/// The convention of `env` and `timeout`: the launcher's own failures are told apart from the
/// program's, whatever that did.
fn exit_code(report: &Report) -> i32 {
    match (report.outcome.status, report.exec_errno) {
        (RunStatus::LauncherFailed, Some(libc::ENOENT | libc::ENOTDIR)) => NOT_FOUND,
        (RunStatus::LauncherFailed, Some(_)) => NOT_EXECUTABLE,
        (RunStatus::LauncherFailed, None) => LAUNCHER_FAILED,
        _ => 0,
    }
}
