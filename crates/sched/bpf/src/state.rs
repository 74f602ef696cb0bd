//! The folder of a running scheduler: its process number and its status.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::SchedulerError;
use crate::counters::write_json;

/// The folder, made if it was missing.
#[derive(Debug, Clone)]
pub(crate) struct StateFolder {
    folder: PathBuf,
}

impl StateFolder {
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// What the running scheduler said last, if one runs.
    pub(crate) fn status(&self) -> Option<Value> {
        let status: Value = serde_json::from_str(&fs::read_to_string(self.status_path()).ok()?).ok()?;
        let pid = status["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok())?;
        is_scheduler(pid).then_some(status)
    }

    /// Process number of the running scheduler.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.status()?["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok())
    }

    pub(crate) fn make(&self) -> Result<(), SchedulerError> {
        fs::create_dir_all(&self.folder).map_err(|error| SchedulerError::file(&self.folder, error))
    }

    /// The right to be the scheduler of this folder; lost with the process, however it ends.
    ///
    /// # Errors
    ///
    /// [`SchedulerError::Failed`] if another one has it.
    pub(crate) fn lock(&self) -> Result<File, SchedulerError> {
        self.make()?;
        let path = self.folder.join("scheduler.lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| SchedulerError::file(&path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                let message = format!("another scheduler is started in `{}`", self.folder.display());
                Err(SchedulerError::Failed { message, hint: "`steelyard-scheduler stop` ends it".to_owned() })
            }
            Err(TryLockError::Error(error)) => Err(SchedulerError::file(&path, error)),
        }
    }

    pub(crate) fn write(&self, status: &Value) -> Result<(), SchedulerError> {
        self.make()?;
        write_json(&self.status_path(), status)
    }

    pub(crate) fn clear(&self) {
        // A folder that was there before, or that is gone, is none of our business.
        let _ = fs::remove_file(self.status_path());
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn status_path(&self) -> PathBuf {
        self.folder.join("status.json")
    }
}

/// A process number is used again after its process is gone: the name must fit too.
fn is_scheduler(pid: i32) -> bool {
    // The kernel keeps 15 characters of a name.
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "steelyard-sched")
}
