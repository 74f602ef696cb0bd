use std::time::Instant;

use super::crew::Crew;
use crate::Share;
use crate::strategy::Exchange;
use crate::wait::Habit;

/// Packets after which a worker looks for a sleeping dispatcher at the latest: looking takes a full fence.
const FEWEST_LOOKS: usize = 8;

/// Takes and processes packets until the stop flag is set, or until the dispatcher has finished and
/// nothing is left.
///
/// # Safety
///
/// It is called once for each worker of an exchange.
pub(super) unsafe fn work<E: Exchange>(
    exchange: &E,
    crew: &Crew,
    worker: usize,
    sources: usize,
    mut habit: Habit,
) -> Share {
    // SAFETY: passed on to the caller.
    let mut seat = unsafe { exchange.seat(worker) };
    let mut share = Share::new(sources);
    let low = exchange.depth() / 4;
    let is_low = |queue| exchange.len(queue) <= low;
    let looks = low.clamp(1, FEWEST_LOOKS);
    let mut unseen = 0;
    let mut idle_since: Option<Instant> = None;
    loop {
        let was_closed = crew.is_closed();
        if let Some((source, packet)) = exchange.take(&mut seat) {
            if let Some(since) = idle_since.take() {
                share.idle += since.elapsed();
            }
            unseen += 1;
            if unseen == looks {
                unseen = 0;
                crew.look_for_dispatcher(is_low);
            }
            let fingerprint = packet.fingerprint();
            // A packet counts if it was finished before the flag.
            if crew.stop.is_set() {
                return share;
            }
            share.count(source, packet, fingerprint);
            continue;
        }
        // From the first look that found nothing to the next packet, looks between two waits included.
        let since = *idle_since.get_or_insert_with(Instant::now);
        if crew.stop.is_set() || (was_closed && !exchange.has_work(&seat)) {
            share.idle += since.elapsed();
            return share;
        }
        crew.look_for_dispatcher(is_low);
        wait_for_work(exchange, crew, worker, (&seat, &mut habit));
    }
}

#[cold]
fn wait_for_work<'a, E: Exchange>(
    exchange: &'a E,
    crew: &Crew,
    worker: usize,
    (seat, habit): (&E::Seat<'a>, &mut Habit),
) {
    let is_ready = || exchange.has_work(seat) || crew.stop.is_set() || crew.is_closed();
    if !crew.patience().wait_as_before(habit, is_ready) {
        crew.sleep(worker, is_ready);
    }
}
