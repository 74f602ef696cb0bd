#!/usr/bin/env bash
# Installs what the communication study can use beyond the native transports: two MPI
# implementations, the simulator that checks its models, and the tools that make links.
# Needs root for packages, Debian or Ubuntu.
#
#   --quiet   say only what failed
set -euo pipefail

quiet=
packages=(gcc libc6-dev openmpi-bin libopenmpi-dev mpich libmpich-dev ucx-utils libsimgrid-dev iproute2 openssh-client)
for word in "$@"; do
  case $word in
    --quiet) quiet=yes ;;
    *) echo "error: \`$word\` is no option; allowed: --quiet" >&2; exit 2 ;;
  esac
done

say() { [ -n "$quiet" ] || echo "$@" >&2; }
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo

if ! command -v apt-get >/dev/null; then
  echo "error: apt-get is not here; install by your system's means: ${packages[*]}" >&2
  exit 3
fi

is_installed() { dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  say "everything is there: ${packages[*]}"
  exit 0
fi
say "installing ${missing[*]}"
$sudo apt-get update -qq || say "the package lists are not fresh"
status=0
for package in "${missing[@]}"; do
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "$package" >/dev/null || {
    echo "could not install $package" >&2
    status=3
  }
done
exit $status
