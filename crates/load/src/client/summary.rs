//! What a client says of itself.

use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};

use crate::client::request::Client;
use crate::client::tally::Tally;
use crate::histogram::Histogram;
use crate::record::{RequestTable, Stamp};

/// Percentiles that are told.
const PERCENTILES: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

fn percentiles(table: &RequestTable, from: Stamp, to: Stamp) -> Value {
    let histogram: Histogram = table.times_ns(from, to).into_iter().collect();
    let mut entries = serde_json::Map::new();
    entries.insert("count".to_owned(), json!(histogram.count()));
    entries.insert("mean_ns".to_owned(), json!(histogram.mean_ns()));
    for percentile in PERCENTILES {
        entries.insert(format!("p{percentile}_ns"), json!(histogram.percentile_ns(percentile)));
    }
    Value::Object(entries)
}

/// Gives counts and percentiles. Latency from the intended time is what a user waits; from the actual send
/// time it is what a tool reports that lets a slow answer delay the next request.
pub(super) fn summarise(
    client: &Client,
    table: &RequestTable,
    tally: &Tally,
    start_ns: u64,
    client_end_ns: u64,
) -> Value {
    json!({
        "scheduled": table.len(),
        "sent": table.times_ns(Stamp::Intended, Stamp::Sent).len(),
        "answered": tally.answered.load(Relaxed),
        "wrong_results": tally.wrong_results.load(Relaxed),
        "unexpected_answers": tally.unexpected.load(Relaxed),
        "connections": tally.connections.load(Relaxed),
        "held_back": tally.held_back.load(Relaxed),
        "is_closed_loop": client.closed_loop > 0,
        "spin_ns": client.spin_ns,
        "start_ns": start_ns,
        "client_end_ns": client_end_ns,
        "send_delay": percentiles(table, Stamp::Intended, Stamp::Sent),
        "latency": percentiles(table, Stamp::Intended, Stamp::Received),
        "latency_from_send": percentiles(table, Stamp::Sent, Stamp::Received),
    })
}

/// The summary as a table for a terminal [ms].
pub(crate) fn table_text(summary: &Value) -> String {
    use std::fmt::Write as _;
    let count = |name: &str| summary[name].as_u64().unwrap_or(0);
    let mut text = format!(
        "{} requests due, {} sent, {} answered, {} with a wrong result\n\n{:<22}{:>12}{:>12}{:>12}\n",
        count("scheduled"),
        count("sent"),
        count("answered"),
        count("wrong_results"),
        "[ms]",
        "send delay",
        "latency",
        "from send",
    );
    let rows = std::iter::once("mean_ns".to_owned())
        .chain(PERCENTILES.iter().map(|percentile| format!("p{percentile}_ns")));
    for row in rows {
        let cell = |name: &str| summary[name][&row].as_f64().map_or(f64::NAN, |time| time / 1e6);
        let name = row.trim_end_matches("_ns");
        let name = if name == "p100" { "max" } else { name };
        let [delay, latency, from_send] = ["send_delay", "latency", "latency_from_send"].map(cell);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<22}{delay:>12.3}{latency:>12.3}{from_send:>12.3}");
    }
    text.push_str(
        "\nlatency counts from the time a request was due; `from send` is what a client reports that\nwaits for an answer before it sends again\n",
    );
    text
}
