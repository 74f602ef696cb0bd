//! A dispatcher, queues, and workers.

mod crew;
mod dispatch;
mod leader;
mod pin;
mod settings;
mod work;

use std::thread;

use steelyard_work::Stopwatch;

use crate::join::join;
use crate::lock::with_lock;
use crate::strategy::{BatchHome, Exchange, HomeQueue, LockFree, Order, SharedQueue, Stealing, Sweep};
use crate::wait::Habit;
use crate::{End, Load, LockKind, Outcome, Share, Strategy, SyncError};
use crew::Crew;
use dispatch::dispatch;
pub use settings::Settings;
use work::work;

/// Executes the pipeline.
///
/// # Errors
///
/// [`SyncError::Usage`] if the settings do not fit each other, [`SyncError::System`] if a CPU cannot
/// be used.
pub fn parallel(load: &Load, settings: &Settings) -> Result<Outcome, SyncError> {
    let queues = load.sources as usize;
    let &Settings { workers, depth, lock, strategy, .. } = settings;
    match strategy {
        Strategy::LockFree => {
            require_own_worker(settings, queues)?;
            execute(load, settings, LockFree::new(queues, depth))
        }
        Strategy::WorkStealing => execute(load, settings, Stealing::new(queues, depth)),
        Strategy::SharedQueue => execute(load, settings, SharedQueue::new(queues, depth)),
        Strategy::BatchDequeue if lock.is_none() => {
            require_own_worker(settings, queues)?;
            execute(load, settings, BatchHome::new(queues, depth))
        }
        Strategy::HomeQueue => with_lock!(require_lock(settings)?, L => {
            execute(load, settings, HomeQueue::<L>::new(queues, depth, workers))
        }),
        Strategy::BatchDequeue => with_lock!(require_lock(settings)?, L => {
            execute(load, settings, Sweep::<L>::new(Order::Around, queues, depth, workers).with_batches())
        }),
        Strategy::LeaderFollowers => with_lock!(require_lock(settings)?, L => {
            leader::execute::<L>(load, settings)
        }),
        Strategy::Awesome => sweep(load, settings, Order::Around),
        Strategy::RandomQueue => sweep(load, settings, Order::Random),
        Strategy::LastQueue => sweep(load, settings, Order::Last),
    }
}

fn sweep(load: &Load, settings: &Settings, order: Order) -> Result<Outcome, SyncError> {
    let &Settings { workers, depth, .. } = settings;
    with_lock!(require_lock(settings)?, L => {
        execute(load, settings, Sweep::<L>::new(order, load.sources as usize, depth, workers))
    })
}

fn require_own_worker(settings: &Settings, queues: usize) -> Result<(), SyncError> {
    if settings.workers == queues {
        return Ok(());
    }
    let (workers, letter) = (settings.workers, settings.strategy.letter());
    Err(SyncError::usage(format!(
        "`--workers` is `{workers}`; allowed for S = `{letter}` without a lock: {queues}, one for each of the n queues"
    )))
}

fn require_lock(settings: &Settings) -> Result<LockKind, SyncError> {
    settings.lock.ok_or_else(|| {
        let letter = settings.strategy.letter();
        let known: Vec<String> =
            LockKind::ALL.iter().map(|(letter, _, name)| format!("`{letter}` {name}")).collect();
        SyncError::usage(format!("L is `n`; allowed for S = `{letter}`: {}", known.join(", ")))
    })
}

#[expect(clippy::needless_pass_by_value, reason = "each seat of an exchange is taken once")]
fn execute<E: Exchange>(load: &Load, settings: &Settings, exchange: E) -> Result<Outcome, SyncError> {
    pin::require(&settings.cpus)?;
    let mut sources = load.open();
    let source_means = sources.means();
    let crew = Crew::new(settings.workers, exchange.access(), exchange.queue_count());
    let (dispatched, shares, times) = thread::scope(|scope| {
        let (exchange, crew) = (&exchange, &crew);
        let workers: Vec<_> = (0..settings.workers)
            .map(|worker| {
                scope.spawn(move || {
                    pin::apply(&settings.cpus, worker + 1);
                    let habit = Habit::after_an_offer();
                    crew.arrive();
                    // SAFETY: each worker is one thread, and the exchange is used in this run only.
                    unsafe { work(exchange, crew, worker, load.sources as usize, habit) }
                })
            })
            .collect();
        pin::apply(&settings.cpus, 0);
        pin::sharpen_timers();
        let habit = Habit::after_an_offer();
        crew.arrive();
        let watch = Stopwatch::start();
        let timer = match load.end {
            End::After(ms) => Some(crew.stop.set_after(scope, ms, || crew.wake_all())),
            End::Packets(_) => None,
        };
        // SAFETY: nothing else dispatches to this exchange.
        let dispatched = unsafe { dispatch(&mut sources, exchange, crew, load.packet_limit(), habit) };
        let shares: Vec<Share> = workers.into_iter().map(join).collect();
        (dispatched, shares, timer.map_or_else(|| watch.elapsed(), join))
    });
    Ok(Outcome {
        shares,
        dispatched: dispatched.packets,
        full_waits: dispatched.full_waits,
        dispatcher_idle: Some(dispatched.idle),
        times,
        source_means,
    })
}

#[cfg(test)]
mod tests;
