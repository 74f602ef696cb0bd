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

. "$(dirname "$0")/packages.sh"
install_packages
[ ${#missing[@]} -gt 0 ] || say "everything is there: ${packages[*]}"
