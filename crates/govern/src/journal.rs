use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::GovernError;
use crate::process::Identity;
use crate::text_file::replace;
use crate::throttle::Original;

const FORMAT: &str = "steelyard/governor-journal/1";
const NAME: &str = "governor-journal.json";

/// What every file said before the governor touched it, written down before it does.
///
/// A governor that is killed leaves it behind; the next start, `restore` and the next best-effort
/// command undo what it lists.
#[derive(Debug, Serialize, Deserialize)]
pub struct Journal {
    format: String,
    governor: Identity,
    originals: Vec<Original>,
}

impl Journal {
    /// Writes the journal of this process.
    ///
    /// # Errors
    ///
    /// [`GovernError::System`] if the folder cannot be written; then nothing may be changed.
    pub(crate) fn write(state: &Path, originals: &[Original]) -> Result<(), GovernError> {
        let journal =
            Self { format: FORMAT.to_owned(), governor: Identity::own(), originals: originals.to_vec() };
        let text = serde_json::to_string_pretty(&journal)
            .map_err(|error| GovernError::system("cannot write the journal", error))?;
        replace(&place(state), &format!("{text}\n"))
    }

    /// Removes it: everything is as it was.
    pub(crate) fn remove(state: &Path) {
        let _ = fs::remove_file(place(state));
    }

    /// Undoes what a governor left that is gone; gives the number of files it had noted.
    ///
    /// # Errors
    ///
    /// [`GovernError::System`] if a journal cannot be understood, or a value is refused; the journal
    /// stays.
    pub fn restore_abandoned(state: &Path) -> Result<usize, GovernError> {
        let path = place(state);
        let Ok(text) = fs::read_to_string(&path) else { return Ok(0) };
        let journal: Self = serde_json::from_str(&text)
            .map_err(|error| GovernError::system(format!("`{}` is damaged", path.display()), error))?;
        if journal.governor.is_alive() {
            return Ok(0);
        }
        // Control groups do not outlive a boot.
        if journal.governor.boot_id == Identity::own().boot_id {
            for original in &journal.originals {
                original.restore().map_err(|source| GovernError::writing(&original.path, source))?;
            }
        }
        Self::remove(state);
        Ok(journal.originals.len())
    }
}

fn place(state: &Path) -> PathBuf {
    state.join(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Allowance, Home, Throttle};

    fn frozen_group() -> (tempfile::TempDir, tempfile::TempDir, Throttle) {
        let (group, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(group.path().join("cgroup.freeze"), "0").unwrap();
        let mut throttle = Throttle::new(&Home::of_unified(group.path().to_owned()));
        Journal::write(state.path(), throttle.originals()).unwrap();
        throttle.apply(Allowance::Parked).unwrap();
        (group, state, throttle)
    }

    #[test]
    fn what_a_living_governor_holds_is_left_alone() {
        let (group, state, _throttle) = frozen_group();
        assert_eq!(Journal::restore_abandoned(state.path()).unwrap(), 0);
        assert_eq!(fs::read_to_string(group.path().join("cgroup.freeze")).unwrap(), "1");
    }

    #[test]
    fn what_a_dead_one_left_is_undone_once() {
        let (group, state, _throttle) = frozen_group();
        let text = fs::read_to_string(place(state.path())).unwrap();
        let mut journal: Journal = serde_json::from_str(&text).unwrap();
        journal.governor.start_ticks += 1;
        fs::write(place(state.path()), serde_json::to_string(&journal).unwrap()).unwrap();
        assert_eq!(Journal::restore_abandoned(state.path()).unwrap(), 1);
        assert_eq!(fs::read_to_string(group.path().join("cgroup.freeze")).unwrap(), "0");
        assert_eq!(Journal::restore_abandoned(state.path()).unwrap(), 0);
    }

    #[test]
    fn a_damaged_journal_is_an_error_with_its_path() {
        let state = tempfile::tempdir().unwrap();
        fs::write(place(state.path()), "{\"format\":").unwrap();
        let error = Journal::restore_abandoned(state.path()).unwrap_err();
        assert!(error.to_string().contains(NAME), "{error}");
    }
}
