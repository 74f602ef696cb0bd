//! What a driver says of itself.

use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Map, Value, json};

use crate::histogram::Histogram;
use crate::orders::check::Fault;
use crate::orders::flight::Flown;
use crate::orders::plan::{FORMAT, Plan};
use crate::orders::request::Operation;
use crate::orders::table::Record;

/// Percentiles that are told.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 100.0];

/// Gives counts, and percentiles of the requests that were due after the warm-up.
pub(super) fn summarise(plan: &Plan, flown: &Flown) -> Value {
    let measure_start_ns = flown.start_ns + plan.warm_up_ms * 1_000_000;
    let records: Vec<&Record> =
        flown.table.records.iter().filter(|record| record.intended_ns >= measure_start_ns).collect();
    let is_answered = |record: &&&Record| record.received_ns() > 0;
    let count = |is_counted: &dyn Fn(&Record) -> bool| records.iter().filter(|each| is_counted(each)).count();
    let answered = records.iter().filter(is_answered);
    let late_ns = |record: &&Record| record.sent_ns().saturating_sub(record.intended_ns);
    let is_own = |record: &&&Record| record.sent_ns() > 0 && !record.is_held_back();
    json!({
        "format": FORMAT,
        "program": concat!("steelyard-load ", env!("CARGO_PKG_VERSION")),
        "is_complete": !crate::signal::is_asked_to_end(),
        "operations": Operation::ALL.map(|(_, name)| name),
        "start_ns": flown.start_ns,
        "measure_start_ns": measure_start_ns,
        "measure_end_ns": flown.start_ns + plan.schedule.duration_ns,
        "end_ns": flown.end_ns,
        "connections": plan.connections,
        "spin_us": plan.spin_us,
        "scheduled": records.len(),
        "answered": answered.clone().count(),
        "wrong_status": count(&|record| record.fault() == Some(Fault::Status)),
        "wrong_body": count(&|record| record.fault() == Some(Fault::Body)),
        "held_back": count(&Record::is_held_back),
        "never_sent": count(&|record| record.sent_ns() == 0),
        "lost_connections": flown.tally.lost_connections.load(Relaxed),
        "malformed_answers": flown.tally.malformed.load(Relaxed),
        "unexpected_bytes": flown.tally.unexpected.load(Relaxed),
        "own_lateness": percentiles(records.iter().filter(is_own).map(late_ns)),
        "latency": percentiles(answered.map(|record| record.received_ns().saturating_sub(record.intended_ns))),
    })
}

fn percentiles(times_ns: impl Iterator<Item = u64>) -> Value {
    let histogram: Histogram = times_ns.collect();
    let mut entries = Map::new();
    entries.insert("count".to_owned(), json!(histogram.count()));
    entries.insert("mean_ns".to_owned(), json!(histogram.mean_ns()));
    for percentile in PERCENTILES {
        entries.insert(format!("p{percentile}_ns"), json!(histogram.percentile_ns(percentile)));
    }
    Value::Object(entries)
}
