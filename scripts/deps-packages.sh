#!/usr/bin/env bash
# Installs the validators of others that packages are checked with, into `.tools/validators`: the RO-Crate
# validator, the library of RO-Crate, and the converter of the Citation File Format. Versions and hashes
# stand in scripts/validators.txt, made from: cffconvert==2.0.0 roc-validator==0.13.0 rocrate==0.16.0
#
#   --quiet   say only what failed
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/options.sh "$@"

folder=.tools/validators
[ -x .tools/bin/uv ] && uv=.tools/bin/uv || uv=uv
command -v "$uv" > /dev/null || { echo "error: there is no uv; hint: make setup" >&2; exit 3; }
"$uv" venv --quiet --allow-existing "$folder"
"$uv" pip install --quiet --require-hashes --python "$folder/bin/python" -r scripts/validators.txt
[ -n "$quiet" ] || echo "everything is there: $folder"
