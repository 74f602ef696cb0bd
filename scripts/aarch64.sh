#!/usr/bin/env bash
# Runs a command with what cargo needs to compile for 64-bit ARM: `scripts/aarch64.sh COMMAND...`.
set -euo pipefail

target=aarch64-unknown-linux-gnu
version=$(rustc --version | cut -d ' ' -f 2)
export PATH=${XDG_CACHE_HOME:-$HOME/.cache}/steelyard/aarch64/rust-$version/bin:$PATH
if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ] || ! command -v aarch64-linux-gnu-gcc >/dev/null; then
  printf '%s\n' "error: cannot compile for $target: its linker or Rust's standard library is not there" '' \
    'hint: make deps-aarch64' >&2
  exit 3
fi
# It links the static programs; zig has no static C library of GNU.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
exec "$@"
