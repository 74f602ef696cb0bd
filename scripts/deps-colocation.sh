#!/usr/bin/env bash
# Installs what the colocation study can use beyond the host: the compiler of the best-effort class, and
# the virtual machine it is shown in, a kernel with sched_ext and an emulator new enough. Where the
# distribution has them not, they come from Debian's backports by an apt configuration of their own and
# are unpacked into the user's cache; nothing of that is installed. Needs root for packages, Debian-like.
#
#   --quiet   say only what failed
set -euo pipefail

. "$(dirname "$0")/options.sh" "$@"

# In this order: the reference first, then what it was also seen to work with. Kernels from 6.19 on are
# split, and the image is in `linux-binary-`; those of 7.1 and 7.2 have damaged type information.
kernels=('6\.18' '6\.17' '6\.16' '6\.19' '7\.0' '7\.3')
# A newer one beside it, with other names of the kernel's functions: the class is tested with both.
newer_kernels=('7\.3' '7\.0' '6\.19')
# Older ones do not divide virtual time among the virtual CPUs.
emulator_major=10

# The newest release of clang that the type information of kernels was tried with, else any.
compiler=clang
if apt-cache show clang-19 >/dev/null 2>&1; then compiler=clang-19; fi
packages=("$compiler" libelf-dev zlib1g-dev pkg-config busybox-static qemu-system-x86)
. "$(dirname "$0")/packages.sh"
install_packages

place=${XDG_CACHE_HOME:-$HOME/.cache}/steelyard/guest/sched-ext
mkdir -p "$place"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
. "$(dirname "$0")/suites.sh"

major() { "$@" --version 2>/dev/null | sed -n 's/.* version \([0-9]*\)\..*/\1/p' | head -1; }
# Whether so many kernels are there.
has_kernels() { [ "$(compgen -G "$place/vmlinuz-*" | wc -l)" -ge "$1" ]; }
has_emulator() {
  local found
  found=$(major qemu-system-x86_64)
  [ "${found:-0}" -ge "$emulator_major" ] && return
  found=$(major env LD_LIBRARY_PATH="$place/qemu/usr/lib/x86_64-linux-gnu" \
    "$place/qemu/usr/bin/qemu-system-x86_64")
  [ "${found:-0}" -ge "$emulator_major" ]
}

# Unpacks the first kernel of the versions $@ that the sources of apt have and that has sched_ext; where
# these have none, of Debian's.
fetch_kernel() { fetch_known_kernel "$@" || { use_suites trixie-backports && fetch_known_kernel "$@"; }; }
fetch_known_kernel() {
  local version release
  for version in "$@"; do
    while read -r release; do
      say "fetching the kernel $release"
      unpack_kernel "$release" && return
      say "$release has no sched_ext, or no configuration that says so"
    done < <(apt-cache search --names-only "^linux-(image|binary)-$version\..*(cloud-amd64|-generic)\$" |
      awk '{ sub(/^linux-(image|binary)-/, "", $1); print $1 }' | grep -v -e unsigned -e dbg |
      sort --version-sort --reverse --unique | head -2)
  done
  return 3
}

# Unpacks the kernel of release $1. Where it is split, image and configuration lie in packages of their
# own, and with Ubuntu's the configuration lies with the modules.
unpack_kernel() {
  local work=$scratch/kernel-$1 part deb image='' config=''
  mkdir -p "$work"
  for part in base image binary modules; do
    (cd "$work" && apt-get download -qq "linux-$part-$1" 2>/dev/null) || continue
    for deb in "$work"/*.deb; do
      dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work" --wildcards './boot/vmlinuz*' './boot/config*' \
        './usr/lib/modules/*/vmlinuz' './usr/lib/modules/*/config' 2>/dev/null || true
      rm "$deb"
    done
    image=$(find "$work" -type f -name 'vmlinuz*' | head -1)
    config=$(find "$work" -type f -name 'config*' | head -1)
    if [ -n "$image" ] && [ -n "$config" ]; then break; fi
  done
  [ -n "$image" ] && [ -n "$config" ] && grep -qx CONFIG_SCHED_CLASS_EXT=y "$config" || return 3
  install -m 644 "$config" "$place/config-$1"
  install -m 644 "$image" "$place/.vmlinuz" && mv "$place/.vmlinuz" "$place/vmlinuz-$1"
}

# Unpacks an emulator from the suite $1, with what it needs and this machine lacks.
fetch_emulator() {
  local deb work=$scratch/emulator
  mkdir -p "$work/archives/partial" "$work/root"
  say "fetching QEMU from $1"
  apt-get install -y -qq --no-install-recommends --download-only --target-release "$1" \
    -o Dir::Cache::archives="$work/archives" qemu-system-x86 >/dev/null || return 3
  for deb in "$work"/archives/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
  rm -rf "$place/qemu"
  mv "$work/root" "$place/qemu"
}

if ! has_kernels 1; then
  fetch_kernel "${kernels[@]}" || {
    echo "error: no kernel with sched_ext found; set STEELYARD_SCHED_EXT_KERNEL to one (bzImage or ELF)" >&2
    exit 3
  }
fi
if ! has_kernels 2 && ! fetch_kernel "${newer_kernels[@]}"; then
  say "no second kernel with sched_ext found: the class is tested with one"
fi
if ! has_emulator; then
  suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  { use_suites "$suite" "$suite-backports" && fetch_emulator "$suite-backports" && has_emulator; } || {
    echo "error: no QEMU $emulator_major or later found; set STEELYARD_EMULATOR to one" >&2
    exit 3
  }
fi
say "the guest with sched_ext is in $place: $(cd "$place" && echo vmlinuz-*)"
