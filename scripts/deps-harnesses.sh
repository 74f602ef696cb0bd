#!/usr/bin/env bash
# Installs the benchmark harnesses whose drivers are tested: Google Benchmark from a package of the distribution
# (needs root, Debian-like), pytest-benchmark and pyperf into the user's cache, and criterion and
# divan, compiled. Go is used where it is there; JMH comes with scripts/deps-replication.sh.
#
#   --quiet   say only what failed
set -euo pipefail

. "$(dirname "$0")/options.sh" "$@"
scripts=$(cd "$(dirname "$0")" && pwd)
packages=(g++ libbenchmark-dev python3-venv)
. "$scripts/packages.sh"
install_packages

place=${XDG_CACHE_HOME:-$HOME/.cache}/steelyard/harnesses
python=$place/python
wanted="pytest==9.2.0 pytest-benchmark==5.3.1 pyperf==2.11.0 pytest-xdist==3.8.0"
if [ "$(cat "$python/wanted" 2>/dev/null)" != "$wanted" ]; then
  say "installing $wanted into $python"
  python3 -m venv --clear "$python"
  # shellcheck disable=SC2086 - words
  "$python/bin/pip" install --quiet --disable-pip-version-check $wanted
  echo "$wanted" > "$python/wanted"
fi
cargo bench --quiet --locked --no-run --target-dir "$place/target" \
  --manifest-path "$(dirname "$scripts")/tests/fixtures/harnesses/rust/Cargo.toml"
say "everything is there: $place"
