//! Entrances for the fuzz targets: what comes over a socket, and the plan of a trial.
//!
//! Compiled by `cargo fuzz` and for tests only. Each one panics where a promise about the result is broken.

use crate::frame::Malformed;
use crate::orders::ResponseReader;
use crate::protocol::Protocol;

/// Bytes that a client or a service receives.
///
/// # Panics
///
/// If what is read is not what is written, or reaches beyond the bytes.
pub fn received(bytes: &[u8]) {
    for (protocol, _) in Protocol::ALL {
        let whole = protocol.parse_request(bytes);
        if let Ok(Some((request, length))) = whole {
            assert!(length <= bytes.len() && length <= protocol.longest_request());
            assert_eq!(protocol.parse_request(&bytes[..length]), whole);
            let written = protocol.write_request(request);
            assert_eq!(protocol.parse_request(&written), Ok(Some((request, written.len()))));
        }
        if let Ok(Some((answer, length))) = protocol.parse_answer(bytes) {
            assert!(length <= bytes.len());
            let written = protocol.write_answer(answer);
            assert_eq!(protocol.parse_answer(&written), Ok(Some((answer, written.len()))));
        }
    }
    answered(bytes);
}

/// Bytes that the driver of orders receives: at once, and one by one.
fn answered(bytes: &[u8]) {
    let read = |piece_bytes: usize| {
        let mut reader = ResponseReader::default();
        bytes.chunks(piece_bytes).try_fold(Vec::new(), |mut found, piece| {
            let mut next = reader.push(piece)?;
            while let Some(response) = next {
                found.push(response);
                next = reader.push(&[])?;
            }
            Ok::<_, Malformed>(found)
        })
    };
    assert_eq!(read(bytes.len().max(1)), read(1));
}

/// The text of a plan.
pub fn plan(text: &str) {
    let _ = crate::trial::parse_plan(text);
}
