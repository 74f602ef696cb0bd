use super::*;
use crate::golden;

/// Every strategy with every lock that it can take.
fn combinations() -> Vec<(Strategy, Option<LockKind>)> {
    let locks = LockKind::ALL.map(|(_, kind, _)| Some(kind));
    Strategy::ALL
        .iter()
        .flat_map(|&(_, strategy, _)| {
            let taken: Vec<Option<LockKind>> = match strategy {
                Strategy::LockFree | Strategy::WorkStealing | Strategy::SharedQueue => vec![None],
                Strategy::BatchDequeue => locks.into_iter().chain([None]).collect(),
                _ => locks.to_vec(),
            };
            taken.into_iter().map(move |lock| (strategy, lock))
        })
        .collect()
}

fn require(load: &Load, settings: &Settings, checksum: u64) {
    let outcome = parallel(load, settings).unwrap();
    assert_eq!(outcome.checksum(), checksum, "{settings:?} {load:?}");
    assert_eq!(Some(outcome.dispatched), load.packet_limit(), "{settings:?} {load:?}");
    assert_eq!(Some(outcome.packets()), load.packet_limit(), "{settings:?} {load:?}");
    let End::Packets(each) = load.end else { panic!("golden rows count packets") };
    for source in 0..load.sources as usize {
        let finished: u64 = outcome.shares.iter().map(|share| share.by_source[source]).sum();
        assert_eq!(finished, each, "{settings:?} {load:?}");
    }
}

/// Every combination sees both distributions, several depths and numbers of workers. The rows of the
/// table are dealt to the combinations so that every row is used.
#[test]
fn every_strategy_and_lock_gives_the_sum_of_the_serial_program() {
    let rows = golden::checksums();
    let combinations = combinations();
    assert_eq!(combinations.len(), 3 + 5 * 9 + 10);
    for (place, &(strategy, lock)) in combinations.iter().enumerate() {
        for (turn, depth) in [1, 2, 8, 32].into_iter().enumerate() {
            let mine = rows.iter().enumerate().filter(|(row, _)| row % combinations.len() == place);
            for (row, (load, checksum)) in mine {
                let queues = load.sources as usize;
                let bound = matches!(strategy, Strategy::LockFree)
                    || (strategy == Strategy::BatchDequeue && lock.is_none());
                let workers = if bound { queues } else { [queues, 1, 2, queues + 3][(row + turn) % 4] };
                let settings = Settings { workers, depth, lock, strategy, cpus: Vec::new() };
                require(load, &settings, *checksum);
            }
        }
    }
}

#[test]
fn a_timed_run_ends_in_time_and_counts_what_it_did() {
    for (strategy, lock) in combinations() {
        let settings = Settings { workers: 2, depth: 8, lock, strategy, cpus: Vec::new() };
        // On a busy machine a worker may not get a core within a few milliseconds.
        let mut lengths_ms = [10_u64, 40, 160, 640].into_iter();
        let outcome = loop {
            let ms = lengths_ms.next().expect("no packet was finished in 640 ms");
            let load = Load { sources: 2, end: End::After(ms), ..golden::checksums()[0].0 };
            let outcome = parallel(&load, &settings).unwrap();
            let expected_ns = ms * 1_000_000..(ms + 1000) * 1_000_000;
            assert!(expected_ns.contains(&outcome.times.wall_ns), "{:?}", outcome.times);
            if outcome.packets() > 0 {
                break outcome;
            }
        };
        assert!(outcome.packets() <= outcome.dispatched);
        // What was dispatched and did not count was in a queue or in the hands of a worker.
        let inside = 2 * settings.depth + settings.workers * settings.depth;
        assert!(outcome.dispatched - outcome.packets() <= inside as u64, "{settings:?} {outcome:?}");
    }
}
