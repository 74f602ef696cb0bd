//! The time a cache line needs from one core to another and back: the state of the host in one number.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use steelyard_memory::Mapping;

use crate::CommError;
use crate::clock::{as_f64, median, now_ns};
use crate::placement;

/// Round trips of one batch, and batches; the median over batches forgets an interruption.
const ROUNDS: u64 = 100;
const BATCHES: usize = 11;
/// Looks at the line between two looks at the clock.
const LOOKS: u32 = 1024;
/// After this time one side gives up: the other one has no CPU of its own [ns].
const LONGEST_NS: u64 = 200_000_000;
/// Says that endpoint 0 has given up.
const GIVEN_UP: u64 = u64::MAX;
const BYTES: usize = 4096;
/// Where the token stands, in a line of its own [bytes].
const TOKEN_AT: usize = 1024;

/// A line that two endpoints share.
#[derive(Debug)]
pub(crate) struct Canary {
    memory: Mapping,
}

impl Canary {
    /// The line in a file that both endpoints map; the file is made if it is not there.
    pub(crate) fn in_file(path: &Path) -> Result<Self, CommError> {
        let failed = |error: std::io::Error| {
            let path = path.display();
            CommError::Unusable(format!("`--canary` names `{path}`, which cannot be used: {error}"))
        };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() < BYTES as u64 {
            file.set_len(BYTES as u64).map_err(failed)?;
        }
        Ok(Self { memory: Mapping::of_file(&file, BYTES)? })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the offsets used here are inside the mapping.
        let address = unsafe { self.memory.start().add(offset) };
        // SAFETY: aligned, mapped as long as `self` lives, and accessed as an atomic only.
        unsafe { AtomicU64::from_ptr(address.cast()) }
    }

    /// Leaves a word that the other endpoint finds if it maps the same file on the same host.
    pub(crate) fn set_token(&self, token: u64) {
        // ORDERING: Release: pairs with `has_token`; the line's start value comes before.
        self.word(TOKEN_AT).store(token, Release);
    }

    /// Whether the other endpoint's word is here.
    pub(crate) fn has_token(&self, token: u64) -> bool {
        // ORDERING: Acquire: pairs with `set_token`.
        self.word(TOKEN_AT).load(Acquire) == token
    }

    /// Prepares a measurement of endpoint 0: the value that the other one must know.
    pub(crate) fn begin(&self) -> u64 {
        // An even number above every one that was used before, so that no old value looks like an answer.
        let base = now_ns() & !1;
        // ORDERING: Release: the other endpoint learns of the measurement by a message that comes after.
        self.word(0).store(base, Release);
        base
    }

    /// Endpoint 0: time of a round trip [ns], the median of batches; `None` if the other one was too slow.
    pub(crate) fn ping_ns(&self, base: u64) -> Option<f64> {
        let line = self.word(0);
        let end_ns = now_ns() + LONGEST_NS;
        let mut batches = [0.0; BATCHES];
        let mut value = base;
        for batch in &mut batches {
            let start_ns = now_ns();
            for _ in 0..ROUNDS {
                // ORDERING: Release: pairs with the other side's Acquire; only the number itself travels.
                line.store(value + 1, Release);
                if !wait_for(line, value + 2, end_ns) {
                    // ORDERING: Release: as above.
                    line.store(GIVEN_UP, Release);
                    return None;
                }
                value += 2;
            }
            *batch = as_f64(now_ns() - start_ns) / as_f64(ROUNDS);
        }
        Some(median(&mut batches))
    }

    /// Endpoint 1: answers, until all round trips are done or one side gives up.
    pub(crate) fn pong(&self, base: u64) {
        let line = self.word(0);
        let end_ns = now_ns() + LONGEST_NS;
        let mut value = base;
        for _ in 0..ROUNDS * BATCHES as u64 {
            if !wait_for(line, value + 1, end_ns) {
                return;
            }
            // ORDERING: Release: pairs with the other side's Acquire.
            line.store(value + 2, Release);
            value += 2;
        }
    }
}

/// Looks at the line until it has a value; false if that takes too long or the other side has given up.
fn wait_for(line: &AtomicU64, wanted: u64, end_ns: u64) -> bool {
    loop {
        for _ in 0..LOOKS {
            // ORDERING: Acquire: pairs with the other side's Release.
            match line.load(Acquire) {
                found if found == wanted => return true,
                GIVEN_UP => return false,
                _ => std::hint::spin_loop(),
            }
        }
        if now_ns() > end_ns || crate::signal::check().is_err() {
            return false;
        }
        std::thread::yield_now();
    }
}

/// Times a cache line between two CPUs, by two threads of this process.
///
/// # Errors
///
/// [`CommError::Usage`] for a CPU that is not allowed, [`CommError::System`] if both do not get to run.
pub fn measure_canary(cpus: [usize; 2], repetitions: usize) -> Result<Vec<f64>, CommError> {
    let canary = Canary { memory: Mapping::anonymous(BYTES)? };
    let turn = AtomicU64::new(0);
    let before = placement::allowed()?;
    for cpu in cpus {
        placement::require(cpu, &before)?;
    }
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            placement::pin(cpus[1])?;
            let mut done = 0;
            while done < repetitions {
                // ORDERING: Acquire: pairs with the Release below: the line has its start value.
                match turn.swap(0, Acquire) {
                    0 => std::thread::yield_now(),
                    base => {
                        canary.pong(base);
                        done += 1;
                    }
                }
                crate::signal::check()?;
            }
            Ok(())
        });
        let own = || {
            placement::pin(cpus[0])?;
            let mut times = Vec::with_capacity(repetitions);
            for _ in 0..repetitions {
                let base = canary.begin();
                // ORDERING: Release: pairs with the Acquire of the other thread.
                turn.store(base, Release);
                times.extend(canary.ping_ns(base));
                while turn.load(Relaxed) != 0 {
                    crate::signal::check()?;
                    std::thread::yield_now();
                }
            }
            Ok(times)
        };
        let times = own();
        match other.join() {
            Ok(answer) => answer.and(times),
            Err(_) => Err(CommError::system("the second thread", std::io::Error::other("it panicked"))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_travels_between_two_cpus() {
        let cpus = placement::allowed().unwrap();
        let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
        if first == last {
            return;
        }
        let times = std::thread::spawn(move || measure_canary([first, last], 3)).join().unwrap().unwrap();
        // A register takes less and a context switch more, if the two CPUs get to run at all.
        assert!(times.iter().all(|time| *time > 5.0), "{times:?}");
    }

    #[test]
    fn an_endpoint_that_never_answers_is_given_up() {
        let canary = Canary { memory: Mapping::anonymous(BYTES).unwrap() };
        let base = canary.begin();
        assert_eq!(canary.ping_ns(base), None);
        // The other side, coming late, ends at once.
        canary.pong(base);
    }

    #[test]
    fn a_token_is_seen_through_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("line");
        let (one, other) = (Canary::in_file(&path).unwrap(), Canary::in_file(&path).unwrap());
        assert!(!other.has_token(99));
        one.set_token(99);
        assert!(other.has_token(99));
    }
}
