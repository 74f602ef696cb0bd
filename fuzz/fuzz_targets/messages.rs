//! Lines of the resident launcher's protocol.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::{Serialize, de::DeserializeOwned};
use steelyard_model::{Reply, Request};

fuzz_target!(|text: &str| {
    for line in text.lines() {
        again::<Request>(line);
        again::<Reply>(line);
    }
});

/// What is read is written on one line so that it reads the same.
fn again<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(line: &str) {
    let Ok(read) = serde_json::from_str::<T>(line) else { return };
    let written = serde_json::to_string(&read).expect("what was read can be written");
    assert!(!written.contains('\n'));
    assert_eq!(serde_json::from_str::<T>(&written).expect("what was written can be read"), read);
}
