//! Requests and answers of a service under load, and plans of its trials.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    steelyard_load::fuzzing::received(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        steelyard_load::fuzzing::plan(text);
    }
});
