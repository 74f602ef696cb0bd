use proptest::prelude::*;

use super::*;

fn refusal(text: &str) -> &'static str {
    match parse_request(text.as_bytes()) {
        Err(wrong) => wrong.0.split_once(' ').map_or(wrong.0, |(status, _)| status),
        other => panic!("{text:?} is read as {other:?}"),
    }
}

const GOOD: &str = "POST /messages HTTP/1.1\r\nHost: here\r\n";

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let cases = [
        ("GET /messages HTTP/1.1\r\nHost: a\r\n\r\n", "405"),
        ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
        ("POST /messages?moderate=2 HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
        ("POST /messages HTTP/1.0\r\nHost: a\r\n\r\n", "505"),
        ("POST /messages HTTP/1.1 \r\nHost: a\r\n\r\n", "505"),
        ("POST  /messages HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("POST /messages\r\nHost: a\r\n\r\n", "400"),
        ("POST /messages HTTP/1.1\r\n\r\n", "400"),
        ("\r\n\r\n", "400"),
    ];
    for (text, status) in cases {
        assert_eq!(refusal(text), status, "{text:?}");
    }
    let fields = [
        ("Content-Length: 1\r\nContent-Length: 1", "400"),
        ("Content-Length: +1", "400"),
        ("Content-Length: 0x1", "400"),
        ("Content-Length:", "400"),
        ("Content-Length: 65537", "413"),
        ("Content-Length: 99999999999999999999999", "413"),
        ("Transfer-Encoding: chunked", "501"),
        ("Transfer-Encoding : chunked", "400"),
        (" folded: yes", "400"),
        ("no colon", "400"),
        ("a: b\nContent-Length: 5", "400"),
        ("a: b\rc", "400"),
        ("a: \u{0}", "400"),
        ("a: \u{e9}", "400"),
        (": x", "400"),
        ("Host: twice", "400"),
        ("X-Request: -1", "400"),
        ("X-Request: 4294967296", "400"),
    ];
    for (field, status) in fields {
        assert_eq!(refusal(&format!("{GOOD}{field}\r\n\r\n")), status, "{field:?}");
    }
}

#[test]
fn a_head_without_end_is_refused_and_a_body_is_awaited() {
    assert_eq!(parse_request(GOOD.as_bytes()), Ok(None));
    assert_eq!(refusal(&format!("{GOOD}a: {}", "b".repeat(HEAD_BYTES))), "431");
    assert_eq!(refusal(&format!("{GOOD}{}\r\n", "a: b\r\n".repeat(MOST_FIELDS))), "431");
    let text = format!("{GOOD}content-LENGTH: \t3 \r\n\r\nabcdef");
    assert_eq!(parse_request(&text.as_bytes()[..text.len() - 4]), Ok(None));
    let request = Request { seq: 0, is_long: false };
    assert_eq!(parse_request(text.as_bytes()), Ok(Some((request, text.len() - 3))));
}

#[test]
fn a_refusal_is_an_answer_with_its_reason() {
    let text = String::from_utf8(write_refusal(Malformed("404 Not Found: only /messages is here"))).unwrap();
    assert!(text.starts_with("HTTP/1.1 404 Not Found\r\n"), "{text}");
    assert!(text.contains("Connection: close\r\n") && text.ends_with("only /messages is here"));
    assert!(parse_answer(text.as_bytes()).is_err());
}

/// Bytes that are nearly a message: the parser gets far into them.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let request = write_request(Request { seq: 7, is_long: true });
    let answer =
        write_answer(Answer { seq: 7, is_long: true, started_ns: 1, finished_ns: 2, result: u64::MAX });
    let whole = prop_oneof![Just(request), Just(answer)];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 0..6);
    (whole, changes).prop_map(|(mut bytes, changes)| {
        for (place, value, kind) in changes {
            let place = place.index(bytes.len());
            match kind {
                0 => bytes[place] = value,
                1 => bytes.insert(place, value),
                _ => drop(bytes.remove(place)),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn messages_come_back_as_they_went(
        seq: u32, is_long: bool, stamps: [u64; 3], rest: Vec<u8>,
    ) {
        let request = Request { seq, is_long };
        let mut bytes = write_request(request);
        let length = bytes.len();
        bytes.extend(&rest);
        prop_assert_eq!(parse_request(&bytes), Ok(Some((request, length))));
        let [started_ns, finished_ns, result] = stamps;
        let answer = Answer { seq, is_long, started_ns, finished_ns, result };
        let mut bytes = write_answer(answer);
        let length = bytes.len();
        bytes.extend(&rest);
        prop_assert_eq!(parse_answer(&bytes), Ok(Some((answer, length))));
    }

    #[test]
    fn no_bytes_are_too_much_for_the_parser(bytes in prop_oneof![any::<Vec<u8>>(), damaged()]) {
        for length in [bytes.len(), bytes.len() / 2] {
            let part = &bytes[..length];
            crate::fuzzing::received(part);
        }
    }

    #[test]
    fn a_message_is_the_same_however_it_arrives(bytes in damaged()) {
        // What is read of a part must be what is read of the whole, or nothing yet.
        let whole = parse_request(&bytes);
        for length in 0..bytes.len() {
            match parse_request(&bytes[..length]) {
                Ok(None) => {}
                part => {
                    prop_assert_eq!(part, whole);
                    break;
                }
            }
        }
    }
}
