//! Messages between the keeper and its zygote.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| steelyard_launch::fuzzing::wire(bytes));
