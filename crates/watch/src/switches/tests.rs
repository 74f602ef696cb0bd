use proptest::prelude::*;

use super::*;
use crate::threads::to_name;

#[derive(Debug, Default)]
struct Kept {
    switches: Vec<Switch>,
    migrations: Vec<Migration>,
}

impl Rows for Kept {
    fn switch(&mut self, switch: &Switch) {
        self.switches.push(*switch);
    }
    fn migration(&mut self, migration: &Migration) {
        self.migrations.push(*migration);
    }
}

/// Ids that no thread of a real host has.
const MEASURED: u32 = 900_000_001;
const OTHER: u32 = 900_000_002;

fn pairing() -> Pairing {
    let mut threads = Threads::new(&["calls".to_owned()]);
    threads.set_name(MEASURED, to_name(b"calls"));
    threads.set_name(OTHER, to_name(b"burner"));
    Pairing::new(threads)
}

fn out(time_ns: u64, cpu: u32, is_preempted: bool) -> Event {
    let what = What::Out { thread: MEASURED, next: OTHER, next_process: OTHER.cast_signed(), is_preempted };
    Event { time_ns, cpu, what }
}

fn back(time_ns: u64, cpu: u32) -> Event {
    Event { time_ns, cpu, what: What::In { thread: MEASURED } }
}

#[test]
fn a_preemption_has_its_time_and_its_cause() {
    let (mut pairing, mut kept) = (pairing(), Kept::default());
    for event in [back(5, 1), out(10, 1, true), back(30, 0), out(40, 0, false)] {
        pairing.take(&event, &mut kept);
    }
    assert_eq!(pairing.finish(99, &mut kept), 1);
    let [first, last] = kept.switches[..] else { panic!("{kept:?}") };
    assert_eq!((first.off_ns, first.on_ns, first.cpu), (10, 30, 1));
    assert!(first.is_preempted && !last.is_preempted);
    assert_eq!((first.next_name, first.next_process), (to_name(b"burner"), OTHER.cast_signed()));
    assert_eq!((last.off_ns, last.on_ns), (40, 99));
    let thread = to_name(b"calls");
    assert_eq!(kept.migrations, [Migration { thread, time_ns: 30, from: 1, to: 0 }]);
    assert_eq!(pairing.unpaired, 0);
}

#[test]
fn switches_of_others_leave_nothing() {
    let (mut pairing, mut kept) = (pairing(), Kept::default());
    let what =
        What::Out { thread: OTHER, next: MEASURED, next_process: MEASURED.cast_signed(), is_preempted: true };
    pairing.take(&Event { time_ns: 1, cpu: 0, what }, &mut kept);
    pairing.take(&Event { time_ns: 2, cpu: 0, what: What::In { thread: OTHER } }, &mut kept);
    assert_eq!(pairing.finish(3, &mut kept), 0);
    assert!(kept.switches.is_empty() && kept.migrations.is_empty());
}

#[test]
fn a_thread_is_followed_from_its_name_to_its_end() {
    let (mut pairing, mut kept) = (pairing(), Kept::default());
    let thread = OTHER;
    let begin = What::Named { thread, name: to_name(b"calls-2") };
    let left = What::Out { thread, next: 0, next_process: 0, is_preempted: false };
    for (time_ns, what) in
        [(1, begin), (2, left), (3, What::In { thread }), (4, What::Ended { thread }), (5, left)]
    {
        pairing.take(&Event { time_ns, cpu: 0, what }, &mut kept);
    }
    assert_eq!(pairing.finish(9, &mut kept), 0);
    assert_eq!(kept.switches.len(), 1);
    assert_eq!(kept.switches[0].next_name, *b"swapper\0\0\0\0\0\0\0\0\0");
}

#[test]
fn lost_records_are_counted_and_make_no_row() {
    let (mut pairing, mut kept) = (pairing(), Kept::default());
    for event in [out(10, 0, true), out(20, 0, true), back(30, 0), back(40, 0)] {
        pairing.take(&event, &mut kept);
    }
    assert_eq!(kept.switches.iter().map(|row| (row.off_ns, row.on_ns)).collect::<Vec<_>>(), [(20, 30)]);
    assert_eq!(pairing.unpaired, 2);
}

proptest! {
    /// Whatever the order in which CPUs hand over their records, the rows are those of the order of time.
    #[test]
    fn records_of_cpus_are_put_in_order(gaps in prop::collection::vec((1_u64..50, 1_u64..50, 0_u32..3), 1..40)) {
        let mut events = Vec::new();
        let mut time_ns = 0;
        for (on, off, cpu) in &gaps {
            events.push(back(time_ns + 1, *cpu));
            time_ns += 1 + on;
            events.push(out(time_ns, *cpu, true));
            time_ns += off;
        }
        let mut merge = Merge::default();
        let (mut pairing, mut kept) = (pairing(), Kept::default());
        for cpu in 0..3 {
            events.iter().filter(|event| event.cpu == cpu).for_each(|event| merge.push(*event));
        }
        merge.release(time_ns / 2, |event| pairing.take(event, &mut kept));
        merge.release(u64::MAX, |event| pairing.take(event, &mut kept));
        prop_assert_eq!(pairing.unpaired, 0);
        prop_assert_eq!(kept.switches.len(), gaps.len() - 1);
        let moves = gaps.windows(2).filter(|pair| pair[0].2 != pair[1].2).count();
        prop_assert_eq!(kept.migrations.len(), moves);
        prop_assert!(kept.switches.iter().all(|row| row.off_ns < row.on_ns));
    }
}
