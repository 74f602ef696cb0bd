#!/usr/bin/env bash
# Installs what the tests start a cluster on this machine with: Slurm, munge, and the server of SSH
# (root, Debian-like). Their own services stay off: tests start daemons with ports and keys of their own.
#
#   --quiet   say only what failed
set -euo pipefail

. "$(dirname "$0")/options.sh" "$@"
packages=(slurm-wlm munge openssh-server openssh-client)
. "$(dirname "$0")/packages.sh"
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  # What Debian's packages ask before they start a service.
  printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
  $sudo chmod 755 "$policy"
  trap '$sudo rm -f "$policy"' EXIT
fi
install_packages
say "everything is there"
