//! The rendezvous of several launchers on one kernel.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use steelyard_model::BarrierSpec;

use crate::error::{During, LaunchError};
use crate::futex;

const LENGTH_BYTES: usize = 8;
/// How often a waiting keeper looks whether its caller gave up.
const LOOK_UP: Duration = Duration::from_millis(20);

/// A mapped barrier file: a count of arrivals, and a word that says that all have arrived.
#[derive(Debug)]
pub(crate) struct Barrier<'a> {
    spec: &'a BarrierSpec,
    words: NonNull<[AtomicU32; 2]>,
}

/// How a rendezvous ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meeting {
    AllArrived,
    CallerGaveUp,
}

impl<'a> Barrier<'a> {
    pub(crate) fn open(spec: &'a BarrierSpec) -> Result<Self, LaunchError> {
        let failure = |source| LaunchError::File { field: "barrier.path", path: spec.path.clone(), source };
        let file = File::options().read(true).write(true).open(&spec.path).map_err(failure)?;
        let length = file.metadata().map_err(failure)?.len();
        if length < LENGTH_BYTES as u64 {
            let reason = format!("{length} bytes long; at least {LENGTH_BYTES} are needed");
            return Err(failure(std::io::Error::new(std::io::ErrorKind::InvalidInput, reason)));
        }
        let address = futex::map_shared(LENGTH_BYTES, Some(file.as_raw_fd())).map_err(failure)?;
        let words = NonNull::new(address.cast()).ok_or(std::io::ErrorKind::OutOfMemory).during("map")?;
        Ok(Self { spec, words })
    }

    fn words(&self) -> &[AtomicU32; 2] {
        // SAFETY: mapped by `open`, page-aligned, unmapped on drop only; atomics may be shared.
        unsafe { self.words.as_ref() }
    }

    /// Arrives and waits for the others. The last one wakes all.
    pub(crate) fn meet(&self, mut has_given_up: impl FnMut() -> bool) -> Result<Meeting, LaunchError> {
        let [arrivals, opened] = self.words();
        // ORDERING: the last arrival sees everything the others did before theirs.
        let arrived = arrivals.fetch_add(1, Ordering::AcqRel) + 1;
        if arrived >= self.spec.parties {
            // ORDERING: pairs with the load below.
            opened.store(1, Ordering::Release);
            futex::wake_all(opened);
            return Ok(Meeting::AllArrived);
        }
        let deadline = Instant::now() + Duration::from_nanos(self.spec.timeout_ns);
        // ORDERING: pairs with the store of the last arrival.
        while opened.load(Ordering::Acquire) == 0 {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Err(self.timed_out(arrivals.load(Ordering::Acquire)));
            }
            if has_given_up() {
                return Ok(Meeting::CallerGaveUp);
            }
            futex::wait(opened, 0, Some(rest.min(LOOK_UP)));
        }
        Ok(Meeting::AllArrived)
    }

    fn timed_out(&self, arrived: u32) -> LaunchError {
        LaunchError::Barrier {
            path: self.spec.path.clone(),
            parties: self.spec.parties,
            arrived,
            timeout_ms: self.spec.timeout_ns / 1_000_000,
        }
    }
}

impl Drop for Barrier<'_> {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this length; no reference outlives the owner.
        unsafe { futex::unmap(self.words.as_ptr().cast(), LENGTH_BYTES) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn spec(parties: u32, timeout_ns: u64) -> (tempfile::NamedTempFile, BarrierSpec) {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(8).unwrap();
        let path = file.path().to_owned();
        (file, BarrierSpec { path, parties, timeout_ns })
    }

    #[test]
    fn parties_meet() {
        let (_file, spec) = spec(3, 5_000_000_000);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    assert_eq!(Barrier::open(&spec).unwrap().meet(|| false).unwrap(), Meeting::AllArrived);
                });
            }
        });
    }

    #[test]
    fn a_lonely_party_is_told_how_many_came() {
        let (_file, spec) = spec(2, 1_000_000);
        let error = Barrier::open(&spec).unwrap().meet(|| false).unwrap_err();
        assert!(error.to_string().contains("2 parties within 1 ms: 1 arrived"), "{error}");
    }

    #[test]
    fn a_caller_can_give_up() {
        let (_file, spec) = spec(2, 5_000_000_000);
        assert_eq!(Barrier::open(&spec).unwrap().meet(|| true).unwrap(), Meeting::CallerGaveUp);
    }

    #[test]
    fn an_empty_file_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let spec = BarrierSpec { path: file.path().to_owned(), parties: 1, timeout_ns: 1 };
        assert!(Barrier::open(&spec).unwrap_err().to_string().contains("0 bytes long"));
    }
}
