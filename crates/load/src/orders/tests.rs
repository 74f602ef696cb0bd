//! The driver against servers that answer, and against servers that do not.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use super::*;

/// Serves each connection with a function in a thread of its own; gives the address.
fn serve(handle: fn(TcpStream)) -> String {
    serve_with(handle)
}

fn serve_with(handle: impl Fn(TcpStream) + Copy + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || handle(stream));
        }
    });
    address
}

/// Answers each request with what a function makes of its number on this connection.
fn answer(mut stream: TcpStream, text: impl Fn(usize) -> Vec<u8>) {
    let mut buffer = [0; 4096];
    let mut count = 0;
    // The driver never has two requests on their way, and a request is one piece.
    while matches!(stream.read(&mut buffer), Ok(1..)) {
        if stream.write_all(&text(count)).is_err() {
            return;
        }
        count += 1;
    }
}

fn found(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 \r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Answer to every request for the only order of seed 7.
fn only_order() -> Vec<u8> {
    found(&super::check::order_text(super::drawn::Drawn { seed: 7, rows: 1 }, 1))
}

/// Sends reads of the only order; gives summary and records.
fn drive(address: &str, measure_ms: u64, drain_limit_ms: u64) -> (Value, Vec<[u64; 5]>) {
    let plan = json!({
        "format": "steelyard/http/1", "address": address, "seed": 7, "rate_per_s": 400, "warm_up_ms": 20,
        "measure_ms": measure_ms, "drain_limit_ms": drain_limit_ms, "connections": 3, "rows": 1,
        "mix": {"read": 1},
    });
    let folder = tempfile::tempdir().unwrap();
    execute(&Plan::parse(&plan.to_string()).unwrap(), folder.path()).unwrap();
    let summary = serde_json::from_slice(&std::fs::read(folder.path().join(SUMMARY)).unwrap()).unwrap();
    let bytes = std::fs::read(folder.path().join(REQUESTS)).unwrap();
    let word =
        |bytes: &[u8], place: usize| u64::from_le_bytes(bytes[place * 8..place * 8 + 8].try_into().unwrap());
    let record = |bytes: &[u8]| [0, 1, 2, 3, 4].map(|place| word(bytes, place));
    (summary, bytes.chunks_exact(40).map(record).collect())
}

#[test]
fn every_request_is_sent_and_answered() {
    let (summary, records) = drive(&serve(|stream| answer(stream, |_| only_order())), 200, 5000);
    assert_eq!(summary["answered"], summary["scheduled"]);
    assert_eq!((&summary["wrong_status"], &summary["wrong_body"]), (&json!(0), &json!(0)));
    assert!(records.len() > 20, "{}", records.len());
    assert!(records.iter().all(|[intended, sent, received, ..]| intended <= sent && sent < received));
    let measured = records.iter().filter(|record| record[0] >= summary["measure_start_ns"].as_u64().unwrap());
    assert_eq!(json!(measured.count()), summary["scheduled"], "the warm-up is recorded, and apart");
}

#[test]
fn wrong_answers_are_told_by_kind() {
    let address = serve(|stream| {
        answer(stream, |count| match count % 3 {
            0 => only_order(),
            1 => found("{}"),
            _ => b"HTTP/1.1 500 \r\nContent-Length: 0\r\n\r\n".to_vec(),
        });
    });
    let (summary, records) = drive(&address, 200, 5000);
    assert_eq!(summary["answered"], summary["scheduled"]);
    assert!(summary["wrong_status"].as_u64().unwrap() > 0 && summary["wrong_body"].as_u64().unwrap() > 0);
    let flags = |flag: u64| records.iter().filter(|record| record[4] & flag != 0).count();
    assert!(records.iter().filter(|record| record[3] >> 32 == 500).count() == flags(2));
    assert!(flags(4) > 0);
}

#[test]
fn a_slow_server_lengthens_latency_and_never_the_schedule() {
    let address = serve(|stream| {
        answer(stream, |_| {
            std::thread::sleep(std::time::Duration::from_millis(30));
            only_order()
        });
    });
    let (summary, records) = drive(&address, 200, 10_000);
    assert_eq!(summary["answered"], summary["scheduled"]);
    assert!(summary["held_back"].as_u64().unwrap() > 0, "three connections cannot take 400/s");
    // Each connection takes 33/s, three of them a quarter of the load: the last requests wait for most of
    // the time that the load takes, although each answer takes 30 ms.
    let [intended, sent, received, ..] = records[records.len() - 1];
    assert!(sent - intended > 100_000_000, "{}", sent - intended);
    assert!(received - sent < received - intended);
}

#[test]
fn what_is_never_answered_is_recorded_as_such() {
    let (summary, records) = drive(&serve(|stream| answer(stream, |_| Vec::new())), 100, 50);
    assert_eq!(summary["answered"], 0);
    assert_eq!(records.iter().filter(|record| record[1] > 0).count(), 3, "one per connection is sent");
    assert!(records.iter().all(|record| record[2] == 0 && record[3] >> 32 == 0));
}

#[test]
fn hostile_answers_cost_their_own_request_alone() {
    let address = serve(|stream| {
        answer(stream, |count| match count {
            0 => only_order(),
            1 => [only_order(), only_order()].concat(),
            _ => unreachable!("two answers to one request end the connection"),
        });
    });
    let (summary, _) = drive(&address, 200, 5000);
    assert_eq!(summary["answered"], summary["scheduled"], "the first of both counts");
    assert!(summary["unexpected_bytes"].as_u64().unwrap() > 0);
}

/// Every second answer is right, the other one is these bytes and the end of the connection.
fn drive_against(wrong: &'static [u8]) -> Value {
    let address = serve_with(move |mut stream| {
        let mut buffer = [0; 4096];
        for text in [only_order(), wrong.to_vec()] {
            if !matches!(stream.read(&mut buffer), Ok(1..)) || stream.write_all(&text).is_err() {
                return;
            }
        }
    });
    let (summary, records) = drive(&address, 200, 3000);
    let answered = summary["answered"].as_u64().unwrap();
    assert!(answered > 0 && answered < summary["scheduled"].as_u64().unwrap(), "{summary:#}");
    assert!(summary["lost_connections"].as_u64().unwrap() > 3, "they are made anew");
    assert!(records.iter().all(|record| (record[2] > 0) == (record[3] >> 32 == 200)));
    summary
}

#[test]
fn answers_that_cannot_be_read_are_counted_and_no_answers() {
    let wrong: [&'static [u8]; 3] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"no HTTP at all\r\n\r\n",
        Box::leak([b"HTTP/1.1 200 OK\r\nA: ".to_vec(), vec![b'a'; 20_000]].concat().into_boxed_slice()),
    ];
    for wrong in wrong {
        assert!(drive_against(wrong)["malformed_answers"].as_u64().unwrap() > 0);
    }
}

#[test]
fn truncated_answers_are_no_answers() {
    for wrong in [&b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"[..], b"HTTP/1.1 2", b""] {
        assert_eq!(drive_against(wrong)["malformed_answers"], 0);
    }
}

#[test]
fn a_server_that_goes_away_leaves_requests_without_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let streams: Vec<_> = listener.incoming().take(3).collect();
        drop(listener);
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(streams);
    });
    let (summary, records) = drive(&address, 100, 100);
    assert_eq!(summary["answered"], 0);
    assert!(records.iter().all(|record| record[2] == 0));
}

#[test]
fn nobody_listening_is_an_error_and_records_are_never_overwritten() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let plan = json!({
        "format": "steelyard/http/1", "address": address, "seed": 7, "rate_per_s": 400, "warm_up_ms": 0,
        "measure_ms": 10, "drain_limit_ms": 0, "connections": 1, "rows": 1, "mix": {"read": 1},
    });
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan::parse(&plan.to_string()).unwrap();
    let error = execute(&plan, folder.path()).unwrap_err();
    assert_eq!(error.exit_code(), 1);
    assert!(error.to_string().contains(&format!("connecting to `{address}` failed")), "{error}");
    std::fs::write(folder.path().join(REQUESTS), b"").unwrap();
    let error = execute(&plan, folder.path()).unwrap_err().to_string();
    assert!(error.contains("never overwritten"), "{error}");
}
