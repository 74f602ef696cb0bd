//! Entrances for the fuzz targets: every parser of what a program, the kernel or another process writes.
//!
//! Compiled by `cargo fuzz` only. Each one panics where a promise about the result is broken.

use crate::keeper::steal::steal_ticks;
use crate::own_metrics;
use crate::zygote::wire;

/// What a measured program says of itself.
pub fn own_metrics(text: &str) {
    let (found, malformed) = own_metrics::parse(text);
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    assert_eq!(found.len() + malformed, lines, "every line is read or counted");
    for each in found {
        assert!(each.value.is_finite() && !each.metric.is_empty() && !each.unit.is_empty());
        let again = format!("{} {:?} {} {}", each.metric, each.value, each.unit, each.iteration);
        let (again, _) = own_metrics::parse(&again);
        assert_eq!((again[0].value.to_bits(), again[0].iteration), (each.value.to_bits(), each.iteration));
    }
}

/// `/proc/stat`, read for the time that a hypervisor took.
pub fn steal(text: &str) {
    let (one, both) = (steal_ticks(text, &[0]), steal_ticks(text, &[0, 1]));
    assert!(one <= both);
}

/// Messages between the keeper and its zygote.
pub fn wire(bytes: &[u8]) {
    if let Some(&order) = bytes.first_chunk() {
        wire::decode_again(order);
    }
    if let Ok(answer) = serde_json::from_slice::<wire::Answer>(bytes) {
        let text = serde_json::to_vec(&answer);
        assert!(text.is_ok_and(|text| serde_json::from_slice::<wire::Answer>(&text).is_ok()));
    }
}
