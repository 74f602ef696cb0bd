use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use super::*;

/// Starts a service that lives as long as the test program.
fn started(moderation: Option<Address>) -> Address {
    let service = Service {
        protocol: Protocol::Http,
        threads: 2,
        work_iterations: 1000,
        long_iterations: 3000,
        moderation,
    };
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let asked = Address::parse("--listen", "tcp:127.0.0.1:0").unwrap();
        service.serve(&asked, |place| {
            sender.send(place.clone()).unwrap();
            Ok(())
        })
    });
    receiver.recv_timeout(Duration::from_secs(20)).unwrap()
}

fn stream(address: &Address) -> TcpStream {
    let Address::Tcp(place) = address else { panic!("{address}") };
    let place: SocketAddr = *place;
    let stream = TcpStream::connect(place).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

#[test]
fn requests_of_one_connection_are_answered_in_order_however_they_arrive() {
    let mut stream = stream(&started(None));
    let mut bytes = Vec::new();
    for seq in 0..20 {
        bytes.extend(Protocol::Http.write_request(Request { seq, is_long: seq % 3 == 0 }));
    }
    for part in bytes.chunks(37) {
        stream.write_all(part).unwrap();
    }
    let (mut received, mut answers) = (Vec::new(), Vec::new());
    let mut buffer = [0; 4096];
    while answers.len() < 20 {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "closed after {} answers", answers.len());
        received.extend_from_slice(&buffer[..count]);
        while let Some((answer, length)) = Protocol::Http.parse_answer(&received).unwrap() {
            received.drain(..length);
            answers.push(answer);
        }
    }
    for (seq, answer) in (0..).zip(&answers) {
        let is_long = seq % 3 == 0;
        assert_eq!((answer.seq, answer.is_long), (seq, is_long));
        assert_eq!(answer.result, work(u64::from(is_long), if is_long { 3000 } else { 1000 }));
    }
}

#[test]
fn a_second_tier_is_asked_for_long_requests_only() {
    let front = started(Some(started(None)));
    let mut caller = Caller::connect(&front, Protocol::Http).unwrap();
    let usual = caller.call(Request { seq: 5, is_long: false }).unwrap();
    assert_eq!((usual.seq, usual.result), (5, work(0, 1000)));
    let long = caller.call(Request { seq: 6, is_long: true }).unwrap();
    assert_eq!((long.seq, long.result), (6, work(1, 1000) ^ work(0, 1000)));
}

#[test]
fn what_is_no_request_is_refused_with_a_reason_and_harms_nobody() {
    let address = started(None);
    let mut caller = Caller::connect(&address, Protocol::Http).unwrap();
    for (sent, status) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
        ("\r\n\r\n", "400"),
        ("POST /messages HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "501"),
    ] {
        let mut stream = stream(&address);
        stream.write_all(sent.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
    }
    let mut endless = stream(&address);
    // The service closes while this still writes: both ends of a connection that is not heard.
    let _ = endless.write_all(&vec![b'a'; 1 << 20]);
    assert!(caller.call(Request { seq: 1, is_long: false }).is_ok());
}
