use std::hint::black_box;

use crate::report::Position;
use crate::{Checksum, Job, Kernel, Report, Scale, Stopwatch, Times, WorkError};

/// Timed sections of one kernel in one process.
#[derive(Debug, Clone, Copy)]
pub struct Sections {
    /// What is computed.
    pub kernel: Kernel,
    /// How much of it.
    pub scale: Scale,
    /// Seed of the input.
    pub seed: u64,
    /// Sections labelled `warmup`, before the others.
    pub warm_up: u32,
    /// Sections labelled `measure`.
    pub repeat: u32,
}

impl Sections {
    /// Executes and checks all sections, each on a fresh copy of the input.
    ///
    /// # Errors
    ///
    /// [`WorkError::WrongResult`] if a check fails, or if a section's checksum differs from the
    /// first one's.
    pub fn execute(&self, report: &mut Report) -> Result<Checksum, WorkError> {
        self.execute_job(self.kernel.job(self.scale, self.seed).as_mut(), report)
    }

    fn execute_job(&self, job: &mut dyn Job, report: &mut Report) -> Result<Checksum, WorkError> {
        let mut checksum = None;
        for iteration in 1..=self.warm_up.saturating_add(self.repeat) {
            let phase = if iteration <= self.warm_up { "warmup" } else { "measure" };
            let times = time(job);
            report.add_times(times, Position { iteration, phase });
            let found = job.check().map_err(|reason| self.wrong(reason))?;
            if *checksum.get_or_insert(found) != found {
                return Err(
                    self.wrong(format!("iteration {iteration} has checksum {found}, the first one another"))
                );
            }
        }
        Ok(checksum.unwrap_or_default())
    }

    fn wrong(&self, reason: String) -> WorkError {
        WorkError::WrongResult { kernel: self.kernel.name(), reason }
    }
}

/// One timed section on a fresh copy of the input.
pub(crate) fn time(job: &mut dyn Job) -> Times {
    job.reset();
    let watch = Stopwatch::start();
    job.execute();
    watch.elapsed()
}

/// Uses a CPU for a given CPU time and gives the times it took.
#[must_use]
pub fn spin(cpu_ns: u64) -> Times {
    let watch = Stopwatch::start();
    let mut word = 1_u64;
    loop {
        // About 10 us, so that the clock is read seldom and the end is met closely.
        for _ in 0..8_192 {
            word = black_box(word.rotate_left(5) ^ 0x9e37_79b9);
        }
        let times = watch.elapsed();
        if times.cpu_ns >= cpu_ns {
            return times;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives what it is told to, one answer per execution.
    #[derive(Debug)]
    struct Scripted(Vec<Result<Checksum, String>>);

    impl Job for Scripted {
        fn reset(&mut self) {}
        fn execute(&mut self) {
            self.0.rotate_left(1);
        }
        fn check(&self) -> Result<Checksum, String> {
            self.0.last().unwrap().clone()
        }
    }

    fn error_of(answers: Vec<Result<Checksum, String>>) -> WorkError {
        let scale = Scale { size: 1, operations: None };
        let sections = Sections { kernel: Kernel::QuickSort, scale, seed: 1, warm_up: 0, repeat: 2 };
        sections.execute_job(&mut Scripted(answers), &mut Report::open(None, false).unwrap()).unwrap_err()
    }

    #[test]
    fn a_wrong_result_exits_with_3_and_says_what_is_wrong() {
        let error = error_of(vec![Ok(Checksum::default()), Err("two numbers are swapped".to_owned())]);
        assert_eq!(error.exit_code(), 3);
        assert_eq!(error.to_string(), "kernel `qsort` gave a wrong result: two numbers are swapped");
    }

    #[test]
    fn sections_that_disagree_are_a_wrong_result() {
        let error = error_of(vec![Ok(Checksum::of([1])), Ok(Checksum::of([2]))]);
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().contains("iteration 2 has checksum"), "{error}");
    }

    #[test]
    fn warm_up_comes_first_and_iterations_count_on() {
        let scale = Scale { size: 64, operations: None };
        let sections = Sections { kernel: Kernel::QuickSort, scale, seed: 3, warm_up: 1, repeat: 2 };
        let mut report = Report::open(None, true).unwrap();
        sections.execute(&mut report).unwrap();
        let mut stdout = Vec::new();
        report.write(&mut stdout).unwrap();
        let text = String::from_utf8(stdout).unwrap();
        let labels: Vec<String> = text
            .lines()
            .map(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                [words[1], words[3], words[4], words[5]].join(" ")
            })
            .collect();
        let expected = ["1 warmup", "2 measure", "3 measure"]
            .iter()
            .flat_map(|place| [format!("cpu ns {place}"), format!("wall ns {place}")]);
        assert_eq!(labels, expected.collect::<Vec<_>>());
    }
}
