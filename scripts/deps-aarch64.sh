#!/usr/bin/env bash
# Installs what compiles for 64-bit ARM and emulates it: linker, static C library and emulator from packages;
# Rust's standard library, unless rustup has it, compiled from the source in Debian's backports; and, in the
# user's cache, the kernel and the shell of an emulated machine. Needs root for packages, Debian-like.
#
#   --quiet   say only what failed
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/options.sh "$@"

target=aarch64-unknown-linux-gnu
packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm)
. scripts/packages.sh
install_packages

cache=${XDG_CACHE_HOME:-$HOME/.cache}/steelyard
version=$(rustc --version | cut -d ' ' -f 2)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
. scripts/suites.sh

# Unpacks from the package $1 what matches $2 into the folder $3, without the leading $4 parts of its path.
unpack() {
  mkdir -p "$scratch/deb" "$3"
  (cd "$scratch/deb" && apt-get download -qq "$1")
  dpkg-deb --fsys-tarfile "$scratch"/deb/*.deb |
    tar -x -C "$3" --no-same-owner --wildcards --strip-components="$4" "$2"
  rm "$scratch"/deb/*.deb
}

# Compiles the standard library from the source of the compiler's own version, and puts it beside a copy of
# the compiler: what `rustup target add` makes, and in the same form.
compile_standard_library() {
  local toolchain=$scratch/toolchain crate=$scratch/crate place=$cache/aarch64/rust-$version source
  source=$(apt-cache madison rust-src | awk -v wanted="$version+" 'index($3, wanted) == 1 { print $3; exit }')
  if [ -z "$source" ]; then
    echo "error: Debian has no rust-src of $version, the version of rustc here" >&2
    return 3
  fi
  say "compiling Rust's standard library for $target from rust-src $source"
  mkdir "$toolchain"
  cp -a "$(rustc --print sysroot)"/{bin,lib} "$toolchain"
  unpack "rust-src=$source" "./usr/src/rustc-$version/library" "$toolchain/lib/rustlib/src/rust" 4
  mkdir -p "$crate/src" "$toolchain/lib/rustlib/$target/lib"
  echo 'fn main() {}' > "$crate/src/main.rs"
  printf '%s\n' '[package]' 'name = "nothing"' 'edition = "2024"' '[profile.release]' 'codegen-units = 1' \
    'debug = "line-tables-only"' > "$crate/Cargo.toml"
  # Rust's own build compiles this crate so; cargo has no profile for a single crate's panics.
  printf '%s\n' '#!/bin/sh' 'case " $* " in *" --crate-name panic_abort "*) set -- "$@" -Cpanic=abort ;; esac' \
    'exec "$@"' > "$scratch/rustc"
  chmod +x "$scratch/rustc"
  (cd "$crate" && PATH=$toolchain/bin:$PATH RUSTC_BOOTSTRAP=1 RUSTC_WRAPPER=$scratch/rustc \
    RUSTFLAGS=-Cembed-bitcode=yes CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    cargo build --quiet --release --target "$target" -Zbuild-std=std,panic_abort,panic_unwind,test)
  cp "$crate/target/$target"/release/deps/lib*.rlib "$toolchain/lib/rustlib/$target/lib/"
  mkdir -p "$cache/aarch64"
  rm -rf "$place" && mv "$toolchain" "$place"
}

has_standard_library() { scripts/aarch64.sh true 2>/dev/null; }

if ! has_standard_library; then
  use_suites trixie-backports
  compile_standard_library
fi
has_standard_library || { echo "error: cannot compile for $target" >&2; exit 3; }

guest=$cache/guest/aarch64
if ! compgen -G "$guest/vmlinuz-*" >/dev/null || [ ! -x "$guest/busybox" ]; then
  foreign=arm64
  use_suites trixie
  kernel=$(apt-cache depends linux-image-cloud-arm64:arm64 | awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ { print $2; exit }')
  say "fetching the kernel ${kernel:?}"
  unpack "$kernel" './boot/vmlinuz-*' "$guest" 2
  unpack busybox-static:arm64 ./usr/bin/busybox "$guest" 3
fi
say "compiles for $target; the emulated machine is in $guest: $(basename "$guest"/vmlinuz-*)"
