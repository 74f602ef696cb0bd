//! What goes into a run and comes out of it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::pipe2;
use steelyard_model::{CapturedStream, InputStream, OutputStream, RunSpec};

use crate::error::{During, LaunchError};

/// Most bytes of a program's own report that are read.
pub(super) const REPORT_BYTES: u64 = 1 << 20;
/// One read of a pipe.
const CHUNK_BYTES: usize = 16 << 10;
/// Together the largest pipe an ordinary user can make, so that one turn empties what an ended program left.
/// SOURCE: default of `fs.pipe-max-size`, 1 MiB.
const CHUNKS_A_TURN: usize = 64;

/// Descriptors of one run, keeper's side.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) input: OwnedFd,
    pub(super) output: Sink,
    pub(super) error: Sink,
    /// Memory file of the program's own report.
    pub(super) report: Option<File>,
}

impl Streams {
    pub(super) fn open(spec: &RunSpec) -> Result<Self, LaunchError> {
        let is_counted = spec.limits.output_bytes.is_some();
        Ok(Self {
            input: open_input(&spec.standard_input)?,
            output: Sink::open("standard_output.path", &spec.standard_output, is_counted)?,
            error: Sink::open("standard_error.path", &spec.standard_error, is_counted)?,
            report: spec.own_metrics.then(open_report).transpose()?,
        })
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.output.total_bytes() + self.error.total_bytes()
    }

    /// Whole lines of the program's own report, and whether there were more than are read.
    pub(super) fn own_report(&mut self) -> (String, bool) {
        let mut bytes = Vec::new();
        if let Some(file) = &mut self.report
            && file.rewind().is_ok()
        {
            // A report that cannot be read is an empty one; what was read until then counts.
            let _ = file.take(REPORT_BYTES + 1).read_to_end(&mut bytes);
        }
        let is_cut = bytes.len() as u64 > REPORT_BYTES;
        if is_cut {
            bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0));
        }
        (String::from_utf8_lossy(&bytes).into_owned(), is_cut)
    }
}

fn open_input(stream: &InputStream) -> Result<OwnedFd, LaunchError> {
    let path = match stream {
        InputStream::File { path } => path.clone(),
        _ => "/dev/null".into(),
    };
    match File::open(&path) {
        Ok(file) => Ok(file.into()),
        Err(source) => Err(LaunchError::File { field: "standard_input.path", path, source }),
    }
}

fn open_report() -> Result<File, LaunchError> {
    let file =
        File::from(memfd_create(c"steelyard-metrics", MFdFlags::MFD_CLOEXEC).during("create a memory file")?);
    // Processes of the tree write through copies of one descriptor or through their own.
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND)).during("set a memory file to append")?;
    Ok(file)
}

/// Where one output stream goes.
#[derive(Debug)]
pub(super) struct Sink {
    pipe: Option<File>,
    /// Kept open until the run is recorded: the close of the last one wakes the keeper, in the time that
    /// is measured.
    child_end: OwnedFd,
    keep: Keep,
    piped_bytes: u64,
}

#[derive(Debug)]
enum Keep {
    Nothing,
    Beginning {
        limit_bytes: u64,
        bytes: Vec<u8>,
    },
    /// Copied by the keeper, which can stop it at the limit.
    Copy(File),
    /// Written by the program itself.
    Direct {
        file: File,
        before_bytes: u64,
    },
}

impl Sink {
    fn open(field: &'static str, stream: &OutputStream, is_counted: bool) -> Result<Self, LaunchError> {
        let keep = match stream {
            OutputStream::Capture { limit_bytes } => {
                Keep::Beginning { limit_bytes: *limit_bytes, bytes: Vec::new() }
            }
            OutputStream::File { path } => {
                let failure = |source| LaunchError::File { field, path: path.clone(), source };
                let file = OpenOptions::new().append(true).create(true).open(path).map_err(failure)?;
                let before_bytes = file.metadata().map_err(failure)?.len();
                if is_counted { Keep::Copy(file) } else { Keep::Direct { file, before_bytes } }
            }
            _ => Keep::Nothing,
        };
        let (pipe, child_end) = if let Keep::Direct { file, .. } = &keep {
            (None, file.try_clone().during("duplicate an output file")?.into())
        } else {
            let (read, write) = pipe2(OFlag::O_CLOEXEC).during("create a pipe")?;
            fcntl(&read, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).during("set a pipe non-blocking")?;
            (Some(read.into()), write)
        };
        Ok(Self { pipe, child_end, keep, piped_bytes: 0 })
    }

    /// The end for the child.
    pub(super) fn child_end(&self) -> BorrowedFd<'_> {
        self.child_end.as_fd()
    }

    /// Becomes readable when the program wrote; `None` when it writes to a file itself.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes what is there, at most a full pipe: a program that writes as fast as it is read must not
    /// keep the keeper from its limits.
    pub(super) fn drain(&mut self) {
        if self.pipe.is_none() {
            return;
        }
        let mut buffer = [0_u8; CHUNK_BYTES];
        for _ in 0..CHUNKS_A_TURN {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => self.take(&buffer[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn take(&mut self, chunk: &[u8]) {
        self.piped_bytes += chunk.len() as u64;
        match &mut self.keep {
            Keep::Beginning { limit_bytes, bytes } => {
                let room = usize::try_from(*limit_bytes).unwrap_or(usize::MAX).saturating_sub(bytes.len());
                bytes.extend_from_slice(&chunk[..room.min(chunk.len())]);
            }
            // A full disk shows in the file, which the caller reads; the run itself goes on.
            Keep::Copy(file) => drop(file.write_all(chunk)),
            Keep::Nothing | Keep::Direct { .. } => {}
        }
    }

    pub(super) fn total_bytes(&self) -> u64 {
        match &self.keep {
            Keep::Direct { file, before_bytes } => {
                file.metadata().map_or(0, |data| data.len().saturating_sub(*before_bytes))
            }
            _ => self.piped_bytes,
        }
    }

    pub(super) fn captured(&self) -> Option<CapturedStream> {
        let Keep::Beginning { bytes, .. } = &self.keep else { return None };
        Some(CapturedStream {
            text: String::from_utf8_lossy(bytes).into_owned(),
            total_bytes: self.piped_bytes,
            truncated: (bytes.len() as u64) < self.piped_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_of_a_long_report_are_read() {
        let mut spec = RunSpec::of("report", ["true"]);
        spec.own_metrics = true;
        let mut streams = Streams::open(&spec).unwrap();
        let line = "name 1 unit\n";
        let file = streams.report.as_mut().unwrap();
        file.write_all(line.repeat(3).as_bytes()).unwrap();
        assert_eq!(streams.own_report(), (line.repeat(3), false));
        let file = streams.report.as_mut().unwrap();
        file.write_all(line.repeat(100_000).as_bytes()).unwrap();
        let (text, is_cut) = streams.own_report();
        assert!(is_cut && text.len() > (1 << 20) - line.len());
        assert!(text.lines().all(|one| one == line.trim_end()));
    }
}
