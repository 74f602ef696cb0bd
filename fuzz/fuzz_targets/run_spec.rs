//! A specification or an outcome as a caller or an older launcher wrote it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::{Serialize, de::DeserializeOwned};
use steelyard_model::{RunOutcome, RunSpec};

fuzz_target!(|text: &[u8]| {
    if let Some(spec) = again::<RunSpec>(text) {
        let _ = spec.validate().map_err(|error| error.to_string());
    }
    again::<RunOutcome>(text);
});

/// What is read is written so that it reads the same.
fn again<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(text: &[u8]) -> Option<T> {
    let read: T = serde_json::from_slice(text).ok()?;
    let written = serde_json::to_vec(&read).expect("what was read can be written");
    assert_eq!(serde_json::from_slice::<T>(&written).expect("what was written can be read"), read);
    Some(read)
}
