//! What two endpoints do: operations in order.

use std::path::Path;

use crate::CommError;
use crate::message::LARGEST_BYTES;

/// Kind of an operation; the value stands in the records (`steelyard.studies.communication.trace.Operation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// A message and its answer of the same size.
    PingPong = 1,
    /// One message, no answer.
    Stream = 2,
    /// One message whose receive was posted long before.
    Send = 3,
    /// One message that had arrived long before its receive.
    Receive = 4,
    /// One message by a non-blocking call.
    SendLater = 5,
    /// One test of completion.
    Test = 6,
    /// One look for a message.
    Probe = 7,
    /// One reading of the clock.
    Time = 8,
}

impl Operation {
    /// Every kind with its name in a plan.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::PingPong, "pingpong"),
        (Self::Stream, "stream"),
        (Self::Send, "send"),
        (Self::Receive, "recv"),
        (Self::SendLater, "isend"),
        (Self::Test, "test"),
        (Self::Probe, "iprobe"),
        (Self::Time, "wtime"),
    ];

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    fn from_number(number: u64) -> Option<Self> {
        Self::ALL.iter().find(|(kind, _)| *kind as u64 == number).map(|(kind, _)| *kind)
    }

    /// Whether endpoint 1 has nothing to do.
    #[must_use]
    pub const fn is_local(self) -> bool {
        matches!(self, Self::Test | Self::Probe | Self::Time)
    }
}

/// One line of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub operation: Operation,
    /// Bytes of the message.
    pub size: u32,
}

impl Step {
    /// One word, for the way to the other endpoint.
    pub(crate) fn to_word(self) -> u64 {
        (self.operation as u64) << 56 | u64::from(self.size)
    }

    pub(crate) fn from_word(word: u64) -> Result<Self, CommError> {
        let operation = Operation::from_number(word >> 56);
        let size = u32::try_from(word & 0x00ff_ffff_ffff_ffff);
        match (operation, size) {
            (Some(operation), Ok(size)) => Ok(Self { operation, size }),
            _ => Err(CommError::Disagreement(format!("{word:#x} is not a step of a plan"))),
        }
    }
}

/// The first line of a plan.
const HEADING: &str = "op,size";

/// Steps in order, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    steps: Vec<Step>,
}

impl Plan {
    /// Reads a plan from a file.
    ///
    /// # Errors
    ///
    /// [`CommError::Unusable`] with the line, if the file cannot be read or says something else.
    pub fn read(path: &Path) -> Result<Self, CommError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            CommError::Unusable(format!("the plan `{}` cannot be read: {error}", path.display()))
        })?;
        Self::parse(&text).map_err(|problem| {
            CommError::Unusable(format!("the plan `{}` is wrong: {problem}", path.display()))
        })
    }

    /// Reads `op,size` lines below that heading.
    ///
    /// # Errors
    ///
    /// What is wrong, with the line's number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use steelyard_comm::Plan;
    /// assert_eq!(Plan::parse("op,size\npingpong,64\n").unwrap().steps().len(), 1);
    /// assert_eq!(Plan::parse("op,size\npingpong,-1\n").unwrap_err(),
    ///     "line 2: size is `-1`; allowed: whole numbers from 0 to 4294967295 (bytes)");
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().enumerate();
        match lines.next() {
            Some((_, line)) if line.trim() == HEADING => {}
            other => {
                let found = other.map_or("", |(_, line)| line);
                return Err(format!("line 1: is `{found}`; expected the heading `{HEADING}`"));
            }
        }
        let mut steps = Vec::new();
        for (index, line) in lines {
            if !line.trim().is_empty() {
                steps.push(step(line).map_err(|problem| format!("line {}: {problem}", index + 1))?);
            }
        }
        match steps.len() {
            0 => Err("it has no operation below its heading".to_owned()),
            // SOURCE: records are numbered by 32 bits.
            count if u32::try_from(count).is_err() => {
                Err(format!("it has {count} operations; allowed: 1 to {}", u32::MAX))
            }
            _ => Ok(Self { steps }),
        }
    }

    pub(crate) fn from_steps(steps: Vec<Step>) -> Self {
        Self { steps }
    }

    /// The plan as a file says it.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::from("op,size\n");
        for step in &self.steps {
            let name =
                Operation::ALL.iter().find(|(kind, _)| *kind == step.operation).map_or("", |kind| kind.1);
            text.push_str(name);
            text.push(',');
            text.push_str(&step.size.to_string());
            text.push('\n');
        }
        text
    }

    /// The steps in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Number of steps.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.steps.len() as u64
    }

    /// Whether there is no step; a plan that was read has one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Largest message [bytes].
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.steps.iter().map(|step| step.size).max().unwrap_or(0)
    }

    /// FNV-1a over the words of the first `count` steps.
    ///
    /// SOURCE: Fowler, Noll, Vo: offset basis and prime of 64 bits, here fed with words instead of bytes.
    #[must_use]
    pub fn checksum(&self, count: u64) -> u64 {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(self.steps.len());
        self.steps[..count]
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |sum, step| (sum ^ step.to_word()).wrapping_mul(0x0100_0000_01b3))
    }
}

fn step(line: &str) -> Result<Step, String> {
    let Some((name, size)) = line.trim().split_once(',') else {
        return Err(format!("is `{line}`; expected `{HEADING}`, as in `pingpong,64`"));
    };
    let operation = Operation::from_name(name.trim()).ok_or_else(|| {
        let known: Vec<&str> = Operation::ALL.iter().map(|(_, name)| *name).collect();
        format!("op is `{name}`; allowed: {}", known.join(", "))
    })?;
    let size = size.trim().parse().map_err(|_| {
        format!("size is `{}`; allowed: whole numbers from 0 to {LARGEST_BYTES} (bytes)", size.trim())
    })?;
    Ok(Step { operation, size })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_name_is_read() {
        for (kind, name) in Operation::ALL {
            let plan = Plan::parse(&format!("op,size\n{name},5\n")).unwrap();
            assert_eq!(plan.steps(), [Step { operation: kind, size: 5 }]);
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let problem = |text: &str| Plan::parse(text).unwrap_err();
        assert!(problem("").contains("expected the heading `op,size`"));
        assert!(problem("op,size\n").contains("no operation"));
        assert!(problem("op,size\nput,1\n").starts_with("line 2: op is `put`; allowed: pingpong,"));
        assert!(problem("op,size\n\nsend,4294967296\n").starts_with("line 3: size is `4294967296`"));
        assert!(problem("op,size\nsend\n").contains("as in `pingpong,64`"));
        assert!(problem("op,size\nsend,1e3\n").contains("size is `1e3`"));
    }

    #[test]
    fn two_gibibytes_are_a_message() {
        assert_eq!(Plan::parse("op,size\nstream,2147483648\n").unwrap().largest(), 1 << 31);
    }

    #[test]
    fn the_checksum_sees_order_and_length() {
        let one = Plan::parse("op,size\nsend,1\nrecv,2\n").unwrap();
        let other = Plan::parse("op,size\nrecv,2\nsend,1\n").unwrap();
        assert_ne!(one.checksum(2), other.checksum(2));
        assert_ne!(one.checksum(1), one.checksum(2));
        assert_eq!(one.checksum(2), one.checksum(99));
    }

    proptest! {
        #[test]
        fn a_step_survives_its_way(kind in 0_usize..8, size: u32) {
            let step = Step { operation: Operation::ALL[kind].0, size };
            prop_assert_eq!(Step::from_word(step.to_word()).unwrap(), step);
        }
    }
}
