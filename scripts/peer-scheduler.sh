#!/usr/bin/env bash
# Builds another scheduler of sched_ext from the Rust registry into a folder of its own, as a peer for
# `benches/colocation_guest.py --peer`. Needs `make deps-colocation` and Rust 1.91 or later; takes minutes.
#
#   scripts/peer-scheduler.sh [NAME] [FOLDER]      (scx_bpfland, ~/.cache/steelyard/peers)
set -euo pipefail

name=${1:-scx_bpfland}
folder=${2:-${XDG_CACHE_HOME:-$HOME/.cache}/steelyard/peers}
version=1.1.4
case $name in
  scx_[a-z0-9]*) ;;
  *) echo "error: \`$name\` is no scheduler of sched_ext; allowed: scx_bpfland, scx_layered, scx_flash, ..." >&2; exit 2 ;;
esac
if [ -x "$folder/bin/$name" ]; then
  echo "$folder/bin/$name"
  exit 0
fi
clang=$(compgen -c clang | grep -xE 'clang(-[0-9]+)?' | sort --version-sort | tail -1) || {
  echo "error: there is no clang; \`make deps-colocation\`" >&2
  exit 3
}
# Outside the checkout, whose Rust is pinned for Steelyard's own programs.
cd "${TMPDIR:-/tmp}"
BPF_CLANG=$clang CARGO_TARGET_DIR=$folder/target cargo install --quiet --locked --jobs "${JOBS:-2}" \
  --root "$folder" --version "$version" "$name" >&2
echo "$folder/bin/$name"
