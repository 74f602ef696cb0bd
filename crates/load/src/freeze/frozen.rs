//! One best-effort process of the experiment, as its conductor sees it.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};

use serde_json::{Value, json};

use crate::LoadError;
use crate::clock::now_ns;
use crate::freeze::link::{KeepAlive, Link};
use crate::freeze::plan::{Plan, READY_LIMIT_MS};
use crate::freeze::work::{BLOCK_BYTES, Kind, START, block};
use crate::iterations::Counter;
use crate::part::Part;
use crate::record::file_error;
use crate::trial::Settings;

/// A process that will be frozen.
#[derive(Debug)]
pub(super) struct Frozen {
    kind: Kind,
    part: Part,
    counter: Counter,
    file: Option<File>,
    keep_alive: KeepAlive,
    link: Option<Link>,
    before: u64,
    during_end: u64,
    state_at_end: Option<(bool, u32)>,
    answer: Option<u64>,
    finished_ns: u64,
    last_count: u64,
    last_ns: u64,
    longest_pause_ns: u64,
}

/// A file without a name: nothing is left of it, however this process ends.
fn nameless_file(plan: &Plan) -> Result<(File, OwnedFd), LoadError> {
    let path = plan.scratch.join(format!("steelyard-park-{}-{}", std::process::id(), now_ns()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
    let file = file.map_err(|error| file_error(&path, &error))?;
    fs::remove_file(&path).map_err(|error| file_error(&path, &error))?;
    // Unlike the original, the copy is inherited by child processes.
    let copy = nix::unistd::dup(&file).map_err(|error| LoadError::system("sharing a file", error))?;
    Ok((file, copy))
}

impl Frozen {
    pub(super) fn start(plan: &Plan, kind: Kind, settings: &mut Settings) -> Result<Self, LoadError> {
        let counter = Counter::create()?;
        let mut words = vec![
            "park-work".to_owned(),
            format!("--kind={}", kind.name()),
            format!("--counter={}", counter.number()),
            format!("--unit-iterations={}", plan.unit_iterations),
        ];
        let keep_alive = KeepAlive::within(plan.seconds);
        let shared = if kind == Kind::File { Some(nameless_file(plan)?) } else { None };
        if kind != Kind::Tcp {
            words.push(format!("--units={}", plan.units));
        }
        if let Some((_, copy)) = &shared {
            words.push(format!("--file={}", copy.as_raw_fd()));
        }
        let mut process = Part::start(kind.name(), &words)?;
        settings.set_process(kind.name(), process.pid(), &plan.side, &plan.cpus);
        process.order("begin")?;
        let place = process.await_line("ready", READY_LIMIT_MS)?;
        let link = if kind == Kind::Tcp { Some(Link::connect(&place, keep_alive)?) } else { None };
        Ok(Self {
            kind,
            part: process,
            counter,
            file: shared.map(|(file, _)| file),
            keep_alive,
            link,
            before: 0,
            during_end: 0,
            state_at_end: None,
            answer: None,
            finished_ns: 0,
            last_count: 0,
            last_ns: now_ns(),
            longest_pause_ns: 0,
        })
    }

    /// Lets it work.
    pub(super) fn begin(&mut self, units: u64) -> Result<(), LoadError> {
        match &mut self.link {
            Some(link) => link.ask(units),
            None => self.part.order("go"),
        }
    }

    pub(super) const fn is_finished(&self) -> bool {
        self.finished_ns > 0
    }

    /// Looks at its progress, and takes its answer when that is there.
    pub(super) fn look(&mut self, units: u64) -> Result<(), LoadError> {
        if self.is_finished() {
            return Ok(());
        }
        let (count, now) = (self.counter.count(), now_ns());
        self.longest_pause_ns = self.longest_pause_ns.max(now - self.last_ns);
        if count > self.last_count {
            (self.last_count, self.last_ns) = (count, now);
        }
        let answer = match &mut self.link {
            Some(link) => link.answer()?,
            None if count >= units && self.part.has_answer(0)? => {
                let text = self.part.await_line("answer", READY_LIMIT_MS)?;
                Some(text.parse().map_err(|_| LoadError::Failed(format!("the answer is `{text}`")))?)
            }
            None if self.part.ended().is_some() => return Err(self.part.lost()),
            None => None,
        };
        if answer.is_some() {
            self.answer = answer;
            self.finished_ns = now_ns();
        }
        Ok(())
    }

    pub(super) fn note_before(&mut self) {
        self.before = self.counter.count();
    }

    pub(super) fn note_frozen(&mut self) {
        self.during_end = self.counter.count();
        self.state_at_end = self.link.as_ref().map(Link::state);
    }

    /// What became of it.
    pub(super) fn finish(
        mut self,
        plan: &Plan,
        expected: u64,
        freeze_end_ns: u64,
    ) -> Result<Value, LoadError> {
        let is_answer_right = self.answer == Some(expected);
        let mut facts = json!({
            "kind": self.kind.name(),
            "units_before": self.before,
            "units_during": self.during_end.saturating_sub(self.before),
            "units_after": self.counter.count().saturating_sub(self.during_end),
            "is_answer_right": is_answer_right,
            "longest_pause_ns": self.longest_pause_ns,
            "finished_after_ns": self.is_finished().then(|| self.finished_ns.saturating_sub(freeze_end_ns)),
        });
        let mut is_right = is_answer_right;
        if let Some((is_established, last_ack_ms)) = self.state_at_end {
            let is_alive = is_established && self.is_finished() && self.answers_again()?;
            is_right &= is_alive;
            facts["keep_alive"] = self.keep_alive.facts();
            facts["was_established_at_end_of_park"] = json!(is_established);
            facts["last_ack_before_end_of_park_ms"] = json!(last_ack_ms);
            facts["is_connection_alive"] = json!(is_alive);
        }
        if let Some(file) = &mut self.file {
            let is_content_right = has_right_content(file, plan.units);
            is_right &= is_content_right;
            facts["is_content_right"] = json!(is_content_right);
        }
        facts["is_right"] = json!(is_right);
        Ok(facts)
    }

    /// Whether another request on the same connection is answered.
    fn answers_again(&mut self) -> Result<bool, LoadError> {
        let Some(link) = &mut self.link else { return Ok(false) };
        link.ask(0)?;
        let limit_ns = now_ns() + READY_LIMIT_MS * 1_000_000;
        while now_ns() < limit_ns {
            crate::signal::check()?;
            if let Some(answer) = link.answer()? {
                return Ok(answer == START);
            }
            crate::clock::sleep_until(now_ns() + 1_000_000);
        }
        Ok(false)
    }
}

/// Compares every block of a file with what it should hold.
fn has_right_content(file: &mut File, blocks: u64) -> bool {
    let mut bytes = [0; BLOCK_BYTES];
    let is_long_enough = file.metadata().is_ok_and(|state| state.len() == blocks * BLOCK_BYTES as u64);
    is_long_enough
        && file.seek(SeekFrom::Start(0)).is_ok()
        && (0..blocks).all(|unit| file.read_exact(&mut bytes).is_ok() && bytes == block(unit))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_wrong_block_or_length_is_noticed() {
        let mut file = tempfile::tempfile().unwrap();
        (0..3).for_each(|unit| file.write_all(&block(unit)).unwrap());
        assert!(has_right_content(&mut file, 3));
        assert!(!has_right_content(&mut file, 2));
        assert!(!has_right_content(&mut file, 4));
        file.seek(SeekFrom::Start(BLOCK_BYTES as u64 + 9)).unwrap();
        file.write_all(&[block(1)[9] ^ 1]).unwrap();
        assert!(!has_right_content(&mut file, 3));
    }

    #[test]
    fn keep_alive_expires_within_a_third_of_the_freeze() {
        for seconds in [6, 20, 150, 100_000] {
            assert!(u64::from(KeepAlive::within(seconds).expires_s()) * 3 <= seconds, "{seconds}");
        }
    }
}
