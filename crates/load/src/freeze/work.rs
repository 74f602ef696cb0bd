//! The work of best-effort processes that are frozen: each has a right answer and counts its progress.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::FromRawFd;

use rand_core::Rng;

use crate::LoadError;
use crate::control::{say, wait_for};
use crate::iterations::Counter;
use crate::options::Given;
use crate::schedule::generator;
use crate::work::work;

/// Bytes that a unit of the file writer writes.
pub(super) const BLOCK_BYTES: usize = 4096;
/// Where every chain of work begins.
pub(super) const START: u64 = 11;

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Computes a number.
    Cpu,
    /// Computes numbers for a client on a TCP connection.
    Tcp,
    /// Writes a file.
    File,
    /// Is in the way: computes until it is ended.
    Hog,
}

impl Kind {
    /// What is frozen.
    pub(super) const FROZEN: [(Self, &'static str); 3] =
        [(Self::Cpu, "cpu"), (Self::Tcp, "tcp"), (Self::File, "file")];
    const ALL: [(Self, &'static str); 4] =
        [(Self::Cpu, "cpu"), (Self::Tcp, "tcp"), (Self::File, "file"), (Self::Hog, "hog")];

    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// Works in units, and counts them where the conductor looks.
#[derive(Debug)]
struct Units {
    counter: Counter,
    iterations: u64,
}

impl Units {
    fn run(&self, count: u64, mut each: impl FnMut(u64) -> std::io::Result<()>) -> Result<u64, LoadError> {
        let mut state = START;
        for unit in 0..count {
            state = work(state, self.iterations);
            each(unit).map_err(|error| LoadError::system("writing a block", error))?;
            self.counter.increase();
        }
        Ok(state)
    }
}

/// Content of a block of the file.
pub(super) fn block(unit: u64) -> [u8; BLOCK_BYTES] {
    let mut bytes = [0; BLOCK_BYTES];
    let mut numbers = generator(unit, 0x62_6c6f_636b);
    for word in bytes.chunks_exact_mut(8) {
        word.copy_from_slice(&numbers.next_u64().to_le_bytes());
    }
    bytes
}

/// `steelyard-load park-work`: one process of the experiment, started by it.
pub(crate) fn command(words: &[String]) -> Result<(), LoadError> {
    let mut given = Given::read(words, &["--control"])?;
    let Some(kind) = given.choice("--kind", &Kind::ALL)? else {
        return Err(LoadError::usage("`park-work` is a part of `park`, which starts it"));
    };
    let descriptor = |number: Option<u64>| number.and_then(|number| i32::try_from(number).ok());
    let counter = descriptor(given.number("--counter", 0, 1 << 20)?);
    let file = descriptor(given.number("--file", 0, 1 << 20)?);
    let count = given.number("--units", 0, 1 << 50)?.unwrap_or(0);
    let iterations = given.number("--unit-iterations", 1, 1 << 50)?.unwrap_or(1);
    given.has_flag("--control");
    given.finish()?;
    wait_for("begin")?;
    let units = match counter {
        Some(number) => Units { counter: Counter::inherit(number)?, iterations },
        None => Units { counter: Counter::create()?, iterations },
    };
    match kind {
        Kind::Cpu => {
            say("ready")?;
            wait_for("go")?;
            let answer = units.run(count, |_| Ok(()))?;
            say(&format!("answer {answer}"))
        }
        Kind::File => {
            // SAFETY: the conductor has opened this descriptor for this process, and nobody else here uses it.
            let mut file = unsafe { File::from_raw_fd(file.unwrap_or(-1)) };
            say("ready")?;
            wait_for("go")?;
            let answer = units.run(count, |unit| file.write_all(&block(unit)))?;
            file.sync_all().map_err(|error| LoadError::system("writing the file", error))?;
            say(&format!("answer {answer}"))
        }
        Kind::Tcp => answer_client(&units),
        Kind::Hog => {
            say("ready")?;
            wait_for("go")?;
            while !crate::signal::is_asked_to_end() {
                units.run(1, |_| Ok(()))?;
            }
            Ok(())
        }
    }
}

/// Answers one client until it goes: a number of units, as 8 bytes, is answered by the result.
fn answer_client(units: &Units) -> Result<(), LoadError> {
    let failed = |error: std::io::Error| LoadError::system("serving a TCP connection", error);
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    say(&format!("ready {address}"))?;
    let (mut client, _) = listener.accept().map_err(failed)?;
    client.set_nodelay(true).map_err(failed)?;
    let mut request = [0; 8];
    while client.read_exact(&mut request).is_ok() {
        let answer = units.run(u64::from_le_bytes(request), |_| Ok(()))?;
        client.write_all(&answer.to_le_bytes()).map_err(failed)?;
    }
    Ok(())
}
