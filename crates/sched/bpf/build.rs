//! Compile the BPF programs with clang and generate their typed skeletons.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;

/// Versions that Debian packages beside a plain `clang`, newest first.
const CLANGS: [&str; 8] =
    ["clang", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-14"];

fn main() -> Result<(), String> {
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo gives no OUT_DIR")?);
    let clang = clang()?;
    // The verifier's messages name source files: by where they lie in the project, not on this machine.
    let place = env::var("CARGO_MANIFEST_DIR").map_err(|error| error.to_string())?;
    let map = format!("-fdebug-prefix-map={place}=steelyard-scheduler");
    for name in ["class", "watch"] {
        let source = format!("src/bpf/{name}.bpf.c");
        SkeletonBuilder::new()
            .source(&source)
            .clang(&clang)
            .clang_args(["-O2", "-mcpu=v3", "-Wall", "-Werror", "-Wno-missing-declarations", &map])
            .build_and_generate(folder.join(format!("{name}.skel.rs")))
            .map_err(|error| format!("`{source}` does not compile: {error:?}"))?;
    }
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    Ok(())
}

fn clang() -> Result<OsString, String> {
    if let Some(chosen) = env::var_os("CLANG") {
        return Ok(chosen);
    }
    let works = |name: &str| Command::new(Path::new(name)).arg("--version").output().is_ok();
    let found = CLANGS.into_iter().find(|name| works(name));
    found.map(OsString::from).ok_or_else(|| "clang is missing: `apt-get install clang`".to_owned())
}
