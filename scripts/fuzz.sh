#!/usr/bin/env bash
# Runs every fuzz target, and the property tests with new examples, for so many seconds: scripts/fuzz.sh [SECONDS].
# What breaks is kept under fuzz/artifacts, or named with the seed of its examples.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds="${1:-60}"
export PATH="$PWD/.tools/bin:$PATH"
if ! command -v cargo-fuzz >/dev/null; then
    echo "installing cargo-fuzz into .tools" >&2
    cargo install cargo-fuzz --locked --quiet --root .tools
fi
# The stable compiler knows the flags of the sanitizers, and takes them only when told so.
export RUSTC_BOOTSTRAP=1
# One thread: what is searched is input, and it must fail the same way again.
export RAYON_NUM_THREADS=1

# Only the address sanitizer's run-time library may be missing; overflow and bounds are checked without it.
library="$(rustc --print target-libdir)"
sanitizer=none
compgen -G "$library/librustc-*_rt.asan.a" >/dev/null && sanitizer=address
nice -n 10 cargo fuzz build --sanitizer "$sanitizer"

failed=()
for source in fuzz/fuzz_targets/*.rs; do
    target="$(basename "$source" .rs)"
    corpus="fuzz/corpus/$target"
    mkdir -p "$corpus"
    seeds=()
    [[ -d "fuzz/seeds/$target" ]] && seeds=("fuzz/seeds/$target")
    echo "== $target: $seconds s"
    nice -n 10 cargo fuzz run --sanitizer "$sanitizer" "$target" "$corpus" "${seeds[@]}" -- \
        -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_funcs=0 -verbosity=0 ||
        failed+=("$target")
done
unset RUSTC_BOOTSTRAP RAYON_NUM_THREADS
properties=(cargo test --locked --release --quiet --workspace --exclude steelyard-py --lib)
nice -n 10 "${properties[@]}" --no-run
echo "== property tests: $seconds s"
end=$((SECONDS + seconds))
while ((SECONDS < end)); do
    export PROPTEST_RNG_SEED=$RANDOM$RANDOM
    said=$(nice -n 10 "${properties[@]}" 2>&1) && continue
    printf '%s\n' "$said"
    failed+=("property tests with PROPTEST_RNG_SEED=$PROPTEST_RNG_SEED")
    break
done
if ((${#failed[@]})); then
    echo "error: broken: ${failed[*]}" >&2
    echo "hint: run one again with: RUSTC_BOOTSTRAP=1 cargo fuzz run TARGET fuzz/artifacts/TARGET/FILE" >&2
    exit 1
fi
