#!/bin/bash
# Build the best-effort scheduling class with its loader as one static program, and put it beside the others.
# With `test`: run its unit tests instead, which need neither root nor sched_ext.
set -eu
cd "$(dirname "$0")/.."

missing=()
[ -n "${CLANG:-}" ] || compgen -c clang | grep -qxE 'clang(-[0-9]+)?' || missing+=(clang)
library=/usr/lib/$(uname -m)-linux-gnu
[ -e "$library/libelf.a" ] || [ -n "${LIBBPF_SYS_LIBRARY_PATH:-}" ] || missing+=(libelf-dev)
[ -e "$library/libz.a" ] || [ -n "${LIBBPF_SYS_LIBRARY_PATH:-}" ] || missing+=(zlib1g-dev)
command -v pkg-config >/dev/null || missing+=(pkg-config)
if [ ${#missing[@]} -gt 0 ]; then
    echo "the scheduler cannot be built here: ${missing[*]} missing" >&2
    echo >&2
    echo "hint: apt-get install ${missing[*]}" >&2
    exit 3
fi

triple=$(rustc -vV | sed -n 's/^host: //p')
variable=CARGO_TARGET_$(echo "$triple" | tr 'a-z-' 'A-Z_')_RUSTFLAGS
folder=$(realpath -m "${CARGO_TARGET_DIR:-target}/scheduler")
# With --target the flags reach the program but not procedural macros, which cannot be static. Messages of panics
# in generated code name it by its place in the build, not on this machine.
export "$variable=${!variable:-} -C target-feature=+crt-static --remap-path-prefix=$folder=build"
export LIBBPF_SYS_LIBRARY_PATH=${LIBBPF_SYS_LIBRARY_PATH:-$library}
settings=(--locked --quiet --manifest-path crates/sched/bpf/Cargo.toml --target "$triple" --target-dir "$folder")
if [ "${1:-}" = test ]; then
    exec cargo test "${settings[@]}"
fi
cargo build --release "${settings[@]}"
mkdir -p src/steelyard/_bin
# Whole or not at all: a program that is there is complete.
cp "$folder/$triple/release/steelyard-scheduler" src/steelyard/_bin/.steelyard-scheduler
mv src/steelyard/_bin/.steelyard-scheduler src/steelyard/_bin/steelyard-scheduler
