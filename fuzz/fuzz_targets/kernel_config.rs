//! Options of a kernel, plain or packed.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| steelyard_host::fuzzing::kernel_config(bytes));
