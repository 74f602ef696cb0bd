//! CPU lists of the kernel, of cgroups and of users.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steelyard_host::CpuSet;

fuzz_target!(|text: &str| {
    let Ok(set) = text.parse::<CpuSet>() else { return };
    assert_eq!(set.to_string().parse::<CpuSet>().expect("a written list can be read"), set);
});
