#!/usr/bin/env bash
# Checks crates/sync under loom, Miri and ThreadSanitizer and with many stress rounds, and the rings of
# crates/comm under ThreadSanitizer, as far as the tools are there, and says which of them ran.
set -uo pipefail
cd "$(dirname "$0")/.."

NIGHTLY="${NIGHTLY:-nightly}"
host=$(rustc -vV | sed -n 's/^host: //p')
ran=()
skipped=()
failed=()

has_component() { # toolchain, component
    command -v rustup >/dev/null && rustup component list --toolchain "$1" --installed 2>/dev/null | grep -q "^$2"
}

check() { # name, command...
    local name=$1
    shift
    echo "== $name"
    if "$@"; then ran+=("$name"); else failed+=("$name"); fi
}

# Every interleaving of small models with three pre-emptions: seconds, once it is compiled.
check "loom" env CARGO_TARGET_DIR=target/loom RUSTFLAGS="--cfg loom" \
    LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-3}" \
    cargo test --locked --quiet --release -p steelyard-sync --lib models

if has_component "$NIGHTLY" miri && has_component "$NIGHTLY" rust-src; then
    # Threads are pre-empted at random; the seed changes where. Provenance is permissive because parking_lot
    # keeps pointers in integers.
    check "Miri" env CARGO_TARGET_DIR=target/miri PROPTEST_CASES=4 PROPTEST_DISABLE_FAILURE_PERSISTENCE=1 \
        MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-seed=${MIRI_SEED:-1}" \
        cargo "+$NIGHTLY" miri test --locked --quiet -p steelyard-sync --lib -- queue:: lock::
else
    skipped+=("Miri (rustup component add --toolchain $NIGHTLY miri rust-src)")
fi

# The standard library must be compiled with it: from the source of a nightly toolchain, or from that which
# `make deps-aarch64` takes from Debian for the compiler of this project.
with_source=$(scripts/aarch64.sh rustc --print sysroot 2>/dev/null || true)
sanitised=()
if has_component "$NIGHTLY" rust-src; then
    sanitised=(cargo "+$NIGHTLY")
elif [ -d "$with_source/lib/rustlib/src/rust/library" ]; then
    sanitised=(env PATH="$with_source/bin:$PATH" RUSTC_BOOTSTRAP=1 cargo)
fi
if ((${#sanitised[@]})); then
    export TSAN_OPTIONS="halt_on_error=1"
    sanitise() { # name, arguments of cargo test
        check "$1" env CARGO_TARGET_DIR=target/tsan RUSTFLAGS="-Zsanitizer=thread --cfg tsan" \
            STEELYARD_STRESS_ROUNDS="${STEELYARD_STRESS_ROUNDS:-50}" \
            "${sanitised[@]}" test --locked --quiet -Zbuild-std --target "$host" "${@:2}"
    }
    sanitise "ThreadSanitizer" -p steelyard-sync --lib --test stress
    sanitise "ThreadSanitizer, transports" -p steelyard-comm --lib -- channel::
else
    skipped+=("ThreadSanitizer (make deps-aarch64, or rustup component add --toolchain $NIGHTLY rust-src)")
fi

check "stress" env STEELYARD_STRESS_ROUNDS="${STEELYARD_STRESS_ROUNDS:-1000}" \
    cargo test --locked --quiet --release -p steelyard-sync --test stress

echo
echo "ran: ${ran[*]:-none}"
echo "skipped: ${skipped[*]:-none}"
echo "failed: ${failed[*]:-none}"
((${#failed[@]} == 0))
