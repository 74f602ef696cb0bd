#!/usr/bin/env bash
# Builds into dist/ what is published, and checks it: the source distribution and, from that, the wheel of
# one target. The native module needs glibc 2.28 (zig links it so), the programs beside it no C library. The
# loader of the best-effort class is in the wheel for x86_64, and is built with clang, libelf and zlib.
#
#   scripts/wheel.sh [TARGET]   Rust's name of the target, such as `aarch64-unknown-linux-gnu`; this machine's
#                               processor with GNU's C library if it is left out
#
# Versions and hashes of the tools stand in scripts/wheel.txt, made by `uv pip compile --generate-hashes
# --universal --no-header --no-annotate` from: auditwheel==6.8.2 build==1.6.1 maturin==1.16.0
# readme-renderer[md]==46.0 (without its extra, twine takes any readme for a good one) twine==7.0.0 ziglang==0.17.1
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:-$(uname -m)-unknown-linux-gnu}
platform=manylinux_2_28_${target%%-*}
# Compiled across it would need those libraries for the other processor.
scheduler=$([ "${target%%-*}" = x86_64 ] && echo yes || echo no)

[ -x .tools/bin/uv ] && uv=.tools/bin/uv || uv=uv
command -v "$uv" > /dev/null || { echo "error: cannot find uv; hint: make setup" >&2; exit 3; }
"$uv" venv --quiet --allow-existing .tools/wheel
"$uv" pip install --quiet --require-hashes --python .tools/wheel/bin/python -r scripts/wheel.txt
# maturin is started by its name, and finds zig beside the interpreter.
PATH=$PWD/.tools/wheel/bin:$PATH

# One at a time: they share these folders.
mkdir -p target
exec 9> target/wheel.lock
flock 9
rm -rf target/sdist target/built
mkdir -p target/sdist dist
pyproject-build --no-isolation --sdist --outdir target/built .
# All times of files in it are the same, by which cargo could not tell what has changed.
tar --extract --touch --file target/built/*.tar.gz --directory target/sdist
# Messages of panics name source files: by where they lie in the project or among crates, not on this machine.
crates=${CARGO_HOME:-$HOME/.cargo}/registry/src
flags="--remap-path-prefix=$crates=crates --remap-path-prefix=$(echo "$PWD"/target/sdist/*)=steelyard"
env "CARGO_TARGET_$(echo "$target" | tr 'a-z-' 'A-Z_')_RUSTFLAGS=$flags" \
  CARGO_BUILD_TARGET=$target CARGO_TARGET_DIR=$PWD/target/wheel STEELYARD_SCHEDULER=$scheduler \
  MATURIN_PEP517_ARGS="--zig --compatibility manylinux_2_28" \
  pyproject-build --no-isolation --wheel --outdir target/built target/sdist/*

twine check --strict target/built/*
python scripts/check_wheel.py target/built/*.whl "$platform"
rm -f dist/*.tar.gz dist/*"$platform".whl
mv target/built/* dist/
