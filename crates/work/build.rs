//! Links the calibration program without the C start-up files: its first instruction is ours.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bin=steelyard-truth=-nostartfiles");
    let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    if features.split(',').any(|feature| feature == "crt-static") {
        // A position-independent static program would have to relocate itself before its first stamp.
        println!("cargo::rustc-link-arg-bin=steelyard-truth=-no-pie");
        println!("cargo::rustc-link-arg-bin=steelyard-truth=-static");
        println!("cargo::rustc-link-arg-bin=steelyard-truth=-Wl,--build-id=none");
    }
}
