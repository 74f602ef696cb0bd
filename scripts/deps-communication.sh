#!/usr/bin/env bash
# Installs what the communication study can use beyond the native transports: two MPI
# implementations, the simulator that checks its models, and the tools that make links.
# Needs root for packages, Debian or Ubuntu.
#
#   --quiet   say only what failed
set -euo pipefail

. "$(dirname "$0")/options.sh" "$@"
packages=(gcc libc6-dev openmpi-bin libopenmpi-dev mpich libmpich-dev ucx-utils libsimgrid-dev iproute2 openssh-client)

. "$(dirname "$0")/packages.sh"
install_packages
[ ${#missing[@]} -gt 0 ] || say "everything is there: ${packages[*]}"
