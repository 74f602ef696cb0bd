//! Entrances for the fuzz targets: what comes over a socket, and the plan of a trial.
//!
//! Compiled by `cargo fuzz` and for tests only. Each one panics where a promise about the result is broken.

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
}

/// The text of a plan.
pub fn plan(text: &str) {
    let _ = crate::trial::parse_plan(text);
}
