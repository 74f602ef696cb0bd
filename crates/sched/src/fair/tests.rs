#![allow(clippy::cast_precision_loss, reason = "small counts")]

use proptest::prelude::*;

use super::*;
use crate::constant::SLICE_NS;

const LAG_NS: u64 = 2 * SLICE_NS;

fn entities(weights: &[u32]) -> Vec<Entity> {
    weights.iter().map(|&weight| Entity::new(weight)).collect()
}

/// Lets whoever is chosen execute for a tick at a time; gives the time of each.
fn shares(weights: &[u32], ticks: u64) -> Vec<u64> {
    let mut entities = entities(weights);
    let mut queue = Queue::new(4);
    for each in 0..u32::try_from(weights.len()).unwrap() {
        queue.add(each, &mut entities, SLICE_NS);
    }
    let mut used = vec![0; weights.len()];
    for _ in 0..ticks {
        let next = queue.choose(&entities);
        queue.take(next, &mut entities);
        entities[next as usize].charge(4_000_000, SLICE_NS);
        used[next as usize] += 1;
    }
    used
}

proptest! {
    #[test]
    fn time_is_shared_by_weight(weights in prop::collection::vec(15_u32..2000, 1..6)) {
        let total: u32 = weights.iter().sum();
        let ticks = 20_000;
        for (used, weight) in shares(&weights, ticks).into_iter().zip(&weights) {
            let (found, fair) = (used as f64, ticks as f64 * f64::from(*weight) / f64::from(total));
            // EEVDF: nobody is more than a slice, here a tick, from its fair share, times the number of others.
            prop_assert!((found - fair).abs() <= 2.0 * weights.len() as f64, "{found} ticks, fair are {fair}");
        }
    }

    #[test]
    fn the_one_chosen_is_a_member_and_sleeping_gains_nothing(
        steps in prop::collection::vec((0_u32..4, 1_u64..6_000_000), 1..300)
    ) {
        let mut entities = entities(&[1024, 1024, 15, 3]);
        let mut queue = Queue::new(4);
        let mut members = [false; 4];
        for (each, time_ns) in steps {
            if members[each as usize] {
                queue.remove(each, &mut entities, LAG_NS);
                let lag = entities[each as usize].lag;
                prop_assert!(lag.abs() <= entities[each as usize].virtual_time(LAG_NS));
            } else {
                queue.add(each, &mut entities, SLICE_NS);
            }
            members[each as usize] = !members[each as usize];
            let next = queue.choose(&entities);
            prop_assert_eq!(next == NONE, members == [false; 4]);
            if next != NONE {
                prop_assert!(members[next as usize]);
                queue.take(next, &mut entities);
                entities[next as usize].charge(time_ns, SLICE_NS);
            }
        }
    }
}

#[test]
fn the_one_that_executes_keeps_its_slice_while_it_is_eligible() {
    let mut entities = entities(&[1024, 1024]);
    let mut queue = Queue::new(4);
    queue.add(0, &mut entities, SLICE_NS);
    queue.take(0, &mut entities);
    queue.add(1, &mut entities, SLICE_NS);
    assert_eq!(queue.choose(&entities), 0, "both are eligible, the slice of the first is not over");
    entities[0].charge(SLICE_NS / 2, SLICE_NS);
    assert_eq!(queue.choose(&entities), 1, "it is ahead of the average now, so not eligible");
}

#[test]
fn a_new_weight_keeps_what_an_entity_is_owed() {
    let mut entities = entities(&[1024, 1024]);
    let mut queue = Queue::new(4);
    queue.add(0, &mut entities, SLICE_NS);
    queue.add(1, &mut entities, SLICE_NS);
    queue.take(0, &mut entities);
    entities[0].charge(1_000_000, SLICE_NS);
    let owed = |queue: &Queue, entities: &[Entity]| queue.sums(entities).average() - entities[1].vruntime;
    let before = owed(&queue, &entities);
    queue.reweigh(1, 4096 << WEIGHT_SHIFT, &mut entities);
    assert_eq!(entities[1].weight, 4096 << WEIGHT_SHIFT);
    // Half a ms of weight 1 is an eighth of weight 4, seen from an average that moves with it.
    assert_eq!(before, 500_000);
    assert!(owed(&queue, &entities) < before && owed(&queue, &entities) > 0);
}
