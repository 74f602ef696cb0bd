use std::thread;

use steelyard_work::Stopwatch;

use crate::join::join;
use crate::timer::StopFlag;
use crate::{End, Load, Outcome, Share, Sources};

/// Draws and processes packets on one thread, from each source in turn.
#[must_use]
pub fn serial(load: &Load) -> Outcome {
    let mut sources = load.open();
    let source_means = sources.means();
    let (share, times) = match load.end {
        End::Packets(each) => {
            let watch = Stopwatch::start();
            (process(&mut sources, Some(each), &StopFlag::default()), watch.elapsed())
        }
        End::After(ms) => {
            let stop = StopFlag::default();
            thread::scope(|scope| {
                let timer = stop.set_after(scope, ms, || ());
                let share = process(&mut sources, None, &stop);
                (share, join(timer))
            })
        }
    };
    Outcome {
        dispatched: share.packets,
        shares: vec![share],
        full_waits: 0,
        dispatcher_idle: None,
        times,
        source_means,
    }
}

fn process(sources: &mut Sources, rounds: Option<u64>, stop: &StopFlag) -> Share {
    let mut share = Share::new(sources.count());
    let mut round = 0;
    while rounds != Some(round) {
        for source in 0..sources.count() {
            let packet = sources.next_packet(source);
            let fingerprint = packet.fingerprint();
            if stop.is_set() {
                return share;
            }
            share.count(source, packet, fingerprint);
        }
        round += 1;
    }
    share
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    #[test]
    fn every_golden_checksum_is_met() {
        for (load, checksum) in golden::checksums() {
            let outcome = serial(&load);
            assert_eq!(outcome.checksum(), checksum, "{load:?}");
            assert_eq!(Some(outcome.packets()), load.packet_limit());
        }
    }

    #[test]
    fn a_timed_run_ends_in_time_and_counts_what_it_did() {
        let load = Load { end: End::After(20), ..golden::checksums()[0].0 };
        let outcome = serial(&load);
        assert!((20_000_000..200_000_000).contains(&outcome.times.wall_ns), "{:?}", outcome.times);
        assert!(outcome.packets() > 1000);
        assert_eq!(outcome.shares[0].by_source.iter().sum::<u64>(), outcome.packets());
    }
}
