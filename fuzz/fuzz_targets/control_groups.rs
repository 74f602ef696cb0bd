//! Files of control groups.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| steelyard_host::fuzzing::control_group_files(text));
