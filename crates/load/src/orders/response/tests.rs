use super::*;
use proptest::prelude::*;

/// Everything that comes of some bytes, in pieces of some lengths.
fn read_in_pieces(bytes: &[u8], pieces: &[usize]) -> Result<Vec<Response>, Malformed> {
    let mut reader = ResponseReader::default();
    let mut found = Vec::new();
    let mut rest = bytes;
    let mut lengths = pieces.iter().cycle();
    while !rest.is_empty() {
        let length = lengths.next().map_or(rest.len(), |length| (*length).clamp(1, rest.len()));
        let (piece, after) = rest.split_at(length);
        rest = after;
        found.extend(reader.push(piece)?);
        // Answers that are whole already.
        while let Some(more) = reader.push(&[])? {
            found.push(more);
        }
        assert!(reader.bytes.len() <= HEAD_BYTES + length, "nothing is heaped up");
        assert!(reader.response.body.len() <= BODY_BYTES);
    }
    Ok(found)
}

fn read(text: &str) -> Result<Vec<Response>, Malformed> {
    read_in_pieces(text.as_bytes(), &[])
}

fn answer(status: u16, body: &str) -> Response {
    Response { status, body: body.as_bytes().to_vec(), is_last: false }
}

#[test]
fn both_ways_to_tell_a_length_are_read() {
    let known = "HTTP/1.1 200 \r\nContent-Length: 3\r\n\r\nabc";
    let chunked = "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nA: b\r\n\r\n";
    assert_eq!(read(known).unwrap(), [answer(200, "abc")]);
    assert_eq!(read(chunked).unwrap(), [answer(201, "abc")]);
    assert_eq!(read(&format!("{known}{chunked}")).unwrap(), [answer(200, "abc"), answer(201, "abc")]);
    assert_eq!(
        read("HTTP/1.1 204 No Content\r\n\r\n").unwrap(),
        [Response { is_last: true, ..answer(204, "") }]
    );
    assert_eq!(read(&format!("HTTP/1.1 100 Continue\r\n\r\n{known}")).unwrap(), [answer(200, "abc")]);
}

#[test]
fn the_last_answer_of_a_connection_is_told() {
    for head in ["HTTP/1.1 200 OK\r\nConnection: x, Close", "HTTP/1.0 200 OK"] {
        let found = read(&format!("{head}\r\nContent-Length: 1\r\n\r\na")).unwrap();
        assert_eq!(found, [Response { is_last: true, ..answer(200, "a") }]);
    }
    let mut reader = ResponseReader::default();
    assert_eq!(reader.push(b"HTTP/1.1 200 OK\r\n\r\nto the").unwrap(), None);
    assert_eq!(reader.push(b" end").unwrap(), None);
    assert_eq!(reader.end(), Some(Response { is_last: true, ..answer(200, "to the end") }));
    assert_eq!(reader.end(), None);
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let fields = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
    let wrong = [
        fields("Content-Length: 3\r\nContent-Length: 3"),
        fields("Content-Length: 3\r\nTransfer-Encoding: chunked"),
        fields("Transfer-Encoding: gzip, chunked"),
        fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        fields("Content-Length: -1"),
        fields("Content-Length: +1"),
        fields("Content-Length: 0x1"),
        fields("Content-Length: 99999999999999999999999"),
        fields("Content-Length: 1048577"),
        fields("Content-Length:"),
        fields("A: b\r\n folded: c"),
        fields("no colon"),
        fields("blank : x"),
        fields("A: b\nContent-Length: 1"),
        "HTTP/2 200 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 20 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 999 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 +20 OK\r\n\r\n".to_owned(),
        "SSH-2.0-x\r\n\r\n".to_owned(),
        "HTTP/1.1 101 Switching\r\n\r\n".to_owned(),
        fields("Transfer-Encoding: chunked") + "-1\r\n",
        fields("Transfer-Encoding: chunked") + "\r\n",
        fields("Transfer-Encoding: chunked") + "fffffffff\r\n",
        fields("Transfer-Encoding: chunked") + "100001\r\n",
        fields("Transfer-Encoding: chunked") + "1\r\nab\r\n",
        fields("Transfer-Encoding: chunked") + "1\nx\r\n",
        fields("Transfer-Encoding: chunked") + &"0".repeat(300),
        "HTTP/1.1 100 Continue\r\n\r\n".repeat(9),
        "HTTP/1.1 200 OK\r\n".to_owned() + &"A: b\r\n".repeat(101) + "\r\n",
        "HTTP/1.1 200 OK\r\nA: ".to_owned() + &"b".repeat(20_000),
    ];
    for text in wrong {
        let shown: String = text.chars().take(80).collect();
        assert!(read(&text).is_err(), "{shown:?}");
        assert!(read_in_pieces(text.as_bytes(), &[1]).is_err(), "{shown:?} in pieces");
    }
}

#[test]
fn a_body_of_chunks_has_the_limit_of_any_other() {
    let mut text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    text += &format!("10000\r\n{}\r\n", "x".repeat(1 << 16)).repeat(17);
    assert_eq!(read(&text), Err(Malformed("a body above 1 MiB")));
    let mut endless = ResponseReader::default();
    endless.push(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let block = vec![b'x'; 1 << 16];
    assert!((0..17).any(|_| endless.push(&block).is_err()));
}

#[test]
fn answers_of_the_service_pass_the_fuzz_target_wherever_they_end() {
    let bytes = include_bytes!("../../../../../fuzz/seeds/load/response");
    assert_eq!(read_in_pieces(bytes, &[]).unwrap().len(), 2);
    for end in 0..=bytes.len() {
        crate::fuzzing::received(&bytes[..end]);
    }
}

/// An answer as a server may write it: body, sizes of chunks or none, fields in between.
fn written() -> impl Strategy<Value = (Response, Vec<u8>)> {
    let body = prop::collection::vec(any::<u8>(), 0..600);
    let chunks = prop::option::of(prop::collection::vec(1_usize..200, 1..8));
    (body, chunks, 200_u16..204, any::<bool>()).prop_map(|(body, chunks, status, is_last)| {
        let mut bytes = format!("HTTP/1.1 {status} x\r\nServer: a\r\n").into_bytes();
        if is_last {
            bytes.extend_from_slice(b"Connection: close\r\n");
        }
        match chunks {
            None => {
                bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
                bytes.extend_from_slice(&body);
            }
            Some(sizes) => {
                bytes.extend_from_slice(b"Transfer-Encoding: Chunked\r\n\r\n");
                let mut rest = body.as_slice();
                for size in sizes.iter().cycle() {
                    let (chunk, after) = rest.split_at((*size).min(rest.len()));
                    rest = after;
                    bytes.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                    bytes.extend_from_slice(chunk);
                    bytes.extend_from_slice(b"\r\n");
                    if chunk.is_empty() {
                        break;
                    }
                }
            }
        }
        (Response { status, body, is_last }, bytes)
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_however_it_is_cut(
        answers in prop::collection::vec(written(), 1..4), pieces in prop::collection::vec(1_usize..90, 1..6)
    ) {
        let bytes: Vec<u8> = answers.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let expected: Vec<Response> = answers.into_iter().map(|(response, _)| response).collect();
        prop_assert_eq!(read_in_pieces(&bytes, &pieces), Ok(expected));
    }

    #[test]
    fn a_truncated_answer_never_counts((response, bytes) in written(), at in 0.0_f64..1.0) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
            reason = "a place within some bytes")]
        let cut = (at * bytes.len() as f64) as usize;
        let mut reader = ResponseReader::default();
        prop_assert_eq!(reader.push(&bytes[..cut]), Ok(None));
        prop_assert_eq!(reader.end(), None);
        prop_assert_eq!(reader.push(&bytes[cut..]), Ok(Some(response)));
        prop_assert!(reader.is_empty());
    }

    #[test]
    fn hostile_bytes_give_the_same_however_they_are_cut(
        (_, mut bytes) in written(), changes in prop::collection::vec((any::<u16>(), any::<u8>()), 0..6),
        noise in prop::collection::vec(any::<u8>(), 0..40), pieces in prop::collection::vec(1_usize..50, 1..6)
    ) {
        for (place, value) in changes {
            let place = usize::from(place) % bytes.len();
            bytes[place] = value;
        }
        bytes.extend(noise);
        let (whole, cut) = (read_in_pieces(&bytes, &[]), read_in_pieces(&bytes, &pieces));
        prop_assert_eq!(whole, cut);
    }
}
