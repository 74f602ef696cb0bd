//! What the endpoints tell each other before the first operation.

use crate::CommError;
use crate::channel::Channel;
use crate::message::Message;
use crate::options::Options;
use crate::plan::{Plan, Step};
use crate::record::Extent;

/// Probes before the first and after the last operation.
///
/// SOURCE: with 500 of them the bounds on the offset of two clocks were at most 60 ns wide of the truth, on
/// every transport (own measurement with a known truth of 0).
pub(crate) const EDGE_PROBES: u32 = 500;

/// Bytes of a control message at most.
const CONTROL_BYTES: usize = 65_536;
const STEPS_PER_MESSAGE: usize = CONTROL_BYTES / 8;
/// Text of a refusal at most [bytes].
const TEXT_BYTES: usize = 1024;
/// Says that the other side is this program; the last byte is the version of what follows.
const MAGIC: u64 = u64::from_be_bytes(*b"steelyd\x01");

/// What both endpoints know after the greeting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Agreement {
    pub(crate) operations: u64,
    pub(crate) block: u32,
    pub(crate) probes: u32,
    pub(crate) checksum: u64,
    pub(crate) canary_token: u64,
    pub(crate) has_canary: bool,
}

impl Agreement {
    /// What endpoint 0 proposes; a token of 0 is no canary.
    pub(crate) fn propose(plan: &Plan, options: &Options, canary_token: u64) -> Self {
        Self {
            operations: plan.len(),
            block: options.block,
            probes: options.probes,
            checksum: plan.checksum(plan.len()),
            canary_token,
            has_canary: canary_token != 0,
        }
    }

    /// Records that the files of an endpoint must hold.
    pub(crate) fn extent(&self) -> Extent {
        let to_index = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let blocks = self.operations.div_ceil(self.block.into()) + 1;
        let probes = blocks * u64::from(self.probes) + 2 * u64::from(EDGE_PROBES);
        Extent { operations: to_index(self.operations), blocks: to_index(blocks), probes: to_index(probes) }
    }
}

/// A buffer for what is no operation.
pub(crate) fn control_message() -> Result<Message, CommError> {
    Message::with_capacity(CONTROL_BYTES)
}

/// Endpoint 0: greets, gives the plan and hears whether endpoint 1 is ready.
pub(crate) fn offer(
    channel: &mut impl Channel,
    control: &mut Message,
    plan: &Plan,
    agreement: &mut Agreement,
) -> Result<(), CommError> {
    let probes_and_block = u64::from(agreement.probes) << 32 | u64::from(agreement.block);
    let words = [MAGIC, agreement.operations, probes_and_block, agreement.checksum, agreement.canary_token];
    control.set_words(&words);
    channel.send(control, words.len() * 8)?;
    for steps in plan.steps().chunks(STEPS_PER_MESSAGE) {
        let words: Vec<u64> = steps.iter().map(|step| step.to_word()).collect();
        control.set_words(&words);
        channel.send(control, words.len() * 8)?;
    }
    channel.receive(control, 16 + TEXT_BYTES)?;
    let [length, has_canary] = control.words();
    agreement.has_canary = agreement.has_canary && has_canary == 1;
    if length == 0 {
        return Ok(());
    }
    let end = 16 + usize::try_from(length).unwrap_or(TEXT_BYTES).min(TEXT_BYTES);
    let text = String::from_utf8_lossy(&control.payload(end)[16..]).into_owned();
    Err(CommError::Refused(format!("endpoint 1: {text}")))
}

/// Endpoint 1: hears the greeting and the plan.
pub(crate) fn hear(
    channel: &mut impl Channel,
    control: &mut Message,
) -> Result<(Plan, Agreement), CommError> {
    channel.receive(control, 40)?;
    let [magic, operations, probes_and_block, checksum, canary_token] = control.words();
    if magic != MAGIC {
        return Err(CommError::Disagreement(
            "the other side is no `steelyard-comm` of this version".to_owned(),
        ));
    }
    let mut steps = Vec::new();
    let mut left = usize::try_from(operations).unwrap_or(usize::MAX);
    while left > 0 {
        let count = left.min(STEPS_PER_MESSAGE);
        channel.receive(control, count * 8)?;
        for bytes in control.payload(count * 8).chunks_exact(8) {
            steps.push(Step::from_word(u64::from_le_bytes(std::array::from_fn(|index| bytes[index])))?);
        }
        left -= count;
    }
    let plan = Plan::from_steps(steps);
    let agreement = Agreement {
        operations,
        block: (probes_and_block & 0xffff_ffff) as u32,
        probes: (probes_and_block >> 32) as u32,
        checksum,
        canary_token,
        has_canary: false,
    };
    if plan.checksum(plan.len()) != checksum || agreement.block == 0 {
        return Err(CommError::Disagreement("the plan did not arrive as it was sent".to_owned()));
    }
    Ok((plan, agreement))
}

/// Endpoint 1: says that it is ready, or why not.
pub(crate) fn answer(
    channel: &mut impl Channel,
    control: &mut Message,
    problem: Option<&str>,
    has_canary: bool,
) -> Result<(), CommError> {
    let text = problem.unwrap_or("").as_bytes();
    let length = text.len().min(TEXT_BYTES);
    control.set_words(&[length as u64, u64::from(has_canary)]);
    control.payload(16 + length)[16..].copy_from_slice(&text[..length]);
    channel.send(control, 16 + TEXT_BYTES)
}

/// Refuses messages that do not fit the memory. `endpoints` is how many of them live on this host.
pub(crate) fn require_memory(plan: &Plan, endpoints: u64) -> Result<(), CommError> {
    let needed = u64::from(plan.largest()) * endpoints;
    match available_bytes() {
        Some(available) if needed > available => Err(CommError::Unusable(format!(
            "the largest message has {} bytes, so the buffers of {endpoints} endpoint(s) need {needed} bytes, but {available} bytes of memory are available; use smaller messages",
            plan.largest()
        ))),
        _ => Ok(()),
    }
}

/// Memory that can be had without swapping: of the host, or of the control group if that is less.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let host = line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024;
    Some(group_bytes().map_or(host, |group| group.min(host)))
}

/// What is left below the limit of the control group (version 2) of this process.
fn group_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/sys/fs/cgroup/{path}/{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    Some(read("memory.max")?.saturating_sub(read("memory.current")?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::channel::StreamChannel;

    #[test]
    fn a_plan_of_several_messages_arrives_as_it_was() {
        let step = |size| Step { operation: crate::Operation::Stream, size };
        let plan = Plan::from_steps((0..20_000).map(step).collect());
        let (one, other) = UnixStream::pair().unwrap();
        let sender = std::thread::spawn(move || {
            let (mut channel, mut control) =
                (StreamChannel::of_unix(one).unwrap(), control_message().unwrap());
            let mut agreement = Agreement {
                operations: plan.len(),
                block: 7,
                probes: 3,
                checksum: plan.checksum(plan.len()),
                canary_token: 5,
                has_canary: true,
            };
            let refused = offer(&mut channel, &mut control, &plan, &mut agreement).unwrap_err();
            (plan, agreement, refused)
        });
        let (mut channel, mut control) = (StreamChannel::of_unix(other).unwrap(), control_message().unwrap());
        let (heard, agreement) = hear(&mut channel, &mut control).unwrap();
        answer(&mut channel, &mut control, Some("no room"), false).unwrap();
        let (plan, proposed, refused) = sender.join().unwrap();
        assert_eq!(heard, plan);
        assert_eq!((agreement.block, agreement.probes, agreement.canary_token), (7, 3, 5));
        assert!(!proposed.has_canary);
        assert_eq!(refused.to_string(), "endpoint 1: no room");
        assert_eq!(refused.exit_code(), 2);
        assert_eq!(agreement.extent().blocks, 20_000_usize.div_ceil(7) + 1);
    }

    #[test]
    fn messages_larger_than_the_memory_are_refused() {
        let plan = Plan::parse("op,size\nstream,4294967295\n").unwrap();
        let error = require_memory(&plan, 1 << 30).unwrap_err();
        assert!(error.to_string().contains("bytes of memory are available"), "{error}");
        assert!(require_memory(&Plan::parse("op,size\nstream,1\n").unwrap(), 2).is_ok());
    }
}
