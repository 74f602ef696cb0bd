#!/usr/bin/env bash
# The whole test suite: Rust, then Python. Prints the counts of both.
set -euo pipefail
cd "$(dirname "$0")/.."

# Parallel test programs would measure each other; builds may use every core.
cargo test --locked --workspace --exclude steelyard-py --no-run --quiet
cargo test --locked --workspace --exclude steelyard-py -- --test-threads=1
.venv/bin/python -m pytest -rs "$@"
