//! What an endpoint does with a plan.

mod follow;
mod lead;

use crate::CommError;
use crate::canary::Canary;
use crate::channel::Channel;
use crate::clock::{measure_stamps, now_ns};
use crate::header::Header;
use crate::message::Message;
use crate::options::{Options, Role};
use crate::placement::{self, RunDelay};
use crate::plan::Plan;
use crate::plant::Plant;
use crate::record::{BlockRecord, Records, file_error};
use crate::setup::{self, Agreement};

/// Time after which what was asked for "long before" has happened: the other endpoint waits in its
/// receive, or a message has arrived [ns]. Waking an endpoint takes up to 50 us here.
const SETTLE_NS: u64 = 50_000;

/// One side of a run.
#[derive(Debug)]
struct Endpoint<'a, C> {
    channel: &'a mut C,
    control: Message,
    message: Message,
    plan: Plan,
    agreement: Agreement,
    records: Records,
    canary: Option<Canary>,
    run_delay: RunDelay,
    plant: Plant,
    gap_ns: u64,
    budget_ns: Option<u64>,
    done: u64,
}

/// Executes a plan as endpoint 0.
pub(crate) fn lead(channel: &mut impl Channel, plan: Plan, options: &Options) -> Result<(), CommError> {
    let endpoints = if options.role == Role::Both { 2 } else { 1 };
    setup::require_memory(&plan, endpoints)?;
    let canary = options.canary.as_deref().map(Canary::in_file).transpose()?;
    // Odd, so that it is never 0, and different in each run.
    let token = if canary.is_some() { (now_ns() << 8) | 1 } else { 0 };
    if let Some(canary) = &canary {
        canary.set_token(token);
    }
    let mut agreement = Agreement::propose(&plan, options, token);
    make_folder(options)?;
    let records = Records::create(&options.out, 0, agreement.extent())?;
    let mut control = setup::control_message()?;
    let greeted = greet(channel, &mut control, &plan, &mut agreement, options);
    let (message, mut header) = match greeted {
        Ok(greeted) => greeted,
        Err(error) => {
            records.discard();
            return Err(error.after(0, plan.len()));
        }
    };
    let plant = Plant::new(options.switch, options.noise, options.seed);
    let canary = canary.filter(|_| agreement.has_canary);
    let run_delay = RunDelay::of_this_thread();
    let (gap_ns, budget_ns) = (options.gap_us * 1000, options.budget_ms.map(|ms| ms * 1_000_000));
    let mut endpoint = Endpoint {
        channel,
        control,
        message,
        plan,
        agreement,
        records,
        canary,
        run_delay,
        plant,
        gap_ns,
        budget_ns,
        done: 0,
    };
    let outcome = endpoint.lead();
    endpoint.close(&mut header, outcome)
}

/// Executes a plan as endpoint 1; what is to be done comes from endpoint 0.
pub(crate) fn follow(channel: &mut impl Channel, options: &Options) -> Result<(), CommError> {
    let mut control = setup::control_message()?;
    let (plan, mut agreement) = setup::hear(channel, &mut control)?;
    let ready = prepare_follower(channel, &plan, &mut agreement, options);
    let problem = ready.as_ref().err().map(ToString::to_string);
    setup::answer(channel, &mut control, problem.as_deref(), agreement.has_canary)?;
    let (message, records, canary, mut header) = match ready {
        Ok(ready) => ready,
        Err(_) if options.role == Role::Child => return Err(CommError::Told { exit_code: 2 }),
        Err(error) => return Err(error),
    };
    // Noise is endpoint 0's.
    let plant = Plant::new(options.switch, None, 0);
    let run_delay = RunDelay::of_this_thread();
    let mut endpoint = Endpoint {
        channel,
        control,
        message,
        plan,
        agreement,
        records,
        canary,
        run_delay,
        plant,
        gap_ns: 0,
        budget_ns: None,
        done: 0,
    };
    let outcome = endpoint.follow();
    endpoint.close(&mut header, outcome)
}

fn greet(
    channel: &mut impl Channel,
    control: &mut Message,
    plan: &Plan,
    agreement: &mut Agreement,
    options: &Options,
) -> Result<(Message, Header), CommError> {
    let mut header = Header::new(0, options, measure_stamps(), &channel.parameters());
    let message = Message::with_capacity(plan.largest() as usize)?;
    setup::offer(channel, control, plan, agreement)?;
    header.add_agreement(agreement);
    header.write(0, None)?;
    write_plan(plan, options)?;
    Ok((message, header))
}

type Ready = (Message, Records, Option<Canary>, Header);

fn prepare_follower(
    channel: &impl Channel,
    plan: &Plan,
    agreement: &mut Agreement,
    options: &Options,
) -> Result<Ready, CommError> {
    if options.role == Role::Connect {
        setup::require_memory(plan, 1)?;
    }
    make_folder(options)?;
    let canary = match &options.canary {
        Some(path) if agreement.canary_token != 0 => Some(Canary::in_file(path)?),
        _ => None,
    };
    let canary = canary.filter(|canary| canary.has_token(agreement.canary_token));
    agreement.has_canary = canary.is_some();
    let records = Records::create(&options.out, 1, agreement.extent())?;
    let mut header = Header::new(1, options, measure_stamps(), &channel.parameters());
    header.add_agreement(agreement);
    let written = header.write(0, None);
    match written.and_then(|()| Message::with_capacity(plan.largest() as usize)) {
        Ok(message) => Ok((message, records, canary, header)),
        Err(error) => {
            records.discard();
            Err(error)
        }
    }
}

fn make_folder(options: &Options) -> Result<(), CommError> {
    std::fs::create_dir_all(&options.out).map_err(|error| file_error(&options.out, &error))
}

/// Leaves the plan beside the records, in its own words.
fn write_plan(plan: &Plan, options: &Options) -> Result<(), CommError> {
    let path = options.out.join("plan.csv");
    let is_same = std::fs::canonicalize(&path)
        .is_ok_and(|there| std::fs::canonicalize(options.plan_path()).is_ok_and(|given| given == there));
    if is_same {
        return Ok(());
    }
    std::fs::write(&path, plan.to_text()).map_err(|error| file_error(&path, &error))
}

impl<C: Channel> Endpoint<'_, C> {
    /// Writes the header again, now with how the run ended.
    fn close(&self, header: &mut Header, outcome: Result<&str, CommError>) -> Result<(), CommError> {
        let outcome = outcome.map_err(|error| error.after(self.done, self.plan.len()));
        let end = match &outcome {
            Ok(end) => end,
            Err(error) => error.end(),
        };
        let written = header.write(self.done, Some(end));
        outcome.and(written)
    }

    /// Keeps the state of the host.
    fn add_block(&mut self, canary_ns: Option<f64>) {
        self.records.add_block(BlockRecord {
            // The number of operations fits 32 bits.
            seq: u32::try_from(self.done).unwrap_or(u32::MAX),
            cpu: placement::current(),
            time_ns: now_ns(),
            run_delay_ns: self.run_delay.read_ns(),
            canary_ns: canary_ns.unwrap_or(f64::NAN),
        });
    }

    /// Waits until what the other endpoint has begun has happened; it may need this CPU for that.
    fn settle() {
        let end_ns = now_ns() + SETTLE_NS;
        while now_ns() < end_ns {
            std::thread::yield_now();
        }
    }
}
