//! What measured programs and `/proc/stat` say.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    steelyard_launch::fuzzing::own_metrics(text);
    steelyard_launch::fuzzing::steal(text);
});
