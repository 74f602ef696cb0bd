//! Best-effort jobs: threads that work without end and count what they have finished.

use std::path::PathBuf;
use std::sync::Arc;

use crate::LoadError;
use crate::clock::now_ns;
use crate::image::{Image, Scaler, Size};
use crate::iterations::{Counter, IterationLog};
use crate::record::{IterationRecord, create_file};
use crate::work::work;

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// Scales an image.
    Resize,
    /// Executes a loop.
    Spin,
}

impl JobKind {
    pub(crate) const ALL: [(Self, &'static str); 2] = [(Self::Resize, "resize"), (Self::Spin, "spin")];

    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// SOURCE: own choice: half a millisecond on a processor of today, ten in a guest whose time is counted.
const SPIN_ITERATIONS: u64 = 250_000;

/// What a job is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) kind: JobKind,
    /// Number of the job, for its records.
    pub(crate) number: u32,
    pub(crate) threads: u32,
    /// Seed of the image.
    pub(crate) seed: u64,
    /// Where the records go.
    pub(crate) path: PathBuf,
    /// Descriptor of the counter that several jobs share, from the conductor.
    pub(crate) counter: Option<i32>,
    /// Ends after this time [ns]; 0: when it is told to.
    pub(crate) duration_ns: u64,
}

/// One thread's work.
trait Work: Send {
    /// One iteration; its checksum is the same each time.
    fn execute(&mut self) -> u64;
}

/// SOURCE: own choice: a photograph of common proportions and a preview of it, some milliseconds of work.
const FROM: Size = Size { width: 1024, height: 768 };
const TO: Size = Size { width: 320, height: 240 };

#[derive(Debug)]
struct Resize {
    source: Arc<Image>,
    scaler: Scaler,
}

impl Work for Resize {
    fn execute(&mut self) -> u64 {
        self.scaler.scale(&self.source).checksum()
    }
}

#[derive(Debug)]
struct Spin;

impl Work for Spin {
    fn execute(&mut self) -> u64 {
        work(1, SPIN_ITERATIONS)
    }
}

impl Job {
    /// Prepares, calls `begin`, and works until a signal or the duration ends it. Gives the iterations.
    pub(crate) fn execute(&self, begin: impl FnOnce() -> Result<(), LoadError>) -> Result<u64, LoadError> {
        let log = match self.counter {
            Some(descriptor) => IterationLog::open(&self.path, Counter::inherit(descriptor)?)?,
            None => IterationLog::new(create_file(&self.path, 0)?, Counter::create()?),
        };
        let mut prepared: Vec<Box<dyn Work>> = match self.kind {
            JobKind::Resize => {
                let source = Arc::new(Image::synthetic(FROM, self.seed));
                let work = || Resize { source: Arc::clone(&source), scaler: Scaler::new(FROM, TO) };
                (0..self.threads).map(|_| Box::new(work()) as Box<dyn Work>).collect()
            }
            JobKind::Spin => (0..self.threads).map(|_| Box::new(Spin) as Box<dyn Work>).collect(),
        };
        begin()?;
        let end_ns = if self.duration_ns == 0 { u64::MAX } else { now_ns() + self.duration_ns };
        let log = &log;
        let count = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..)
                .zip(&mut prepared)
                .map(|(thread, work)| scope.spawn(move || self.repeat(log, thread, work.as_mut(), end_ns)))
                .collect();
            threads.into_iter().try_fold(0, |sum, thread| {
                let ended = thread.join();
                let count =
                    ended.unwrap_or_else(|_| Err(LoadError::Failed("a thread has panicked".to_owned())))?;
                Ok::<u64, LoadError>(sum + count)
            })
        })?;
        if self.counter.is_none() {
            log.finish()?;
        }
        Ok(count)
    }

    fn repeat(
        &self,
        log: &IterationLog,
        thread: u32,
        work: &mut dyn Work,
        end_ns: u64,
    ) -> Result<u64, LoadError> {
        let mut writer = log.writer();
        let mut first = None;
        let mut count = 0;
        while !crate::signal::is_asked_to_end() {
            let checksum = work.execute();
            let stamp = now_ns();
            if *first.get_or_insert(checksum) != checksum {
                let message =
                    format!("iteration {count} of thread {thread} has another checksum than the first");
                return Err(LoadError::Failed(message));
            }
            if stamp >= end_ns {
                break;
            }
            writer.add(IterationRecord { job: self.number, thread, end_ns: stamp })?;
            count += 1;
        }
        Ok(count)
    }
}
