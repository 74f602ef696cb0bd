#!/usr/bin/env bash
# Makes `.tools/bullseye`, the oldest userland at hand in which the wheel can be tried: Debian 11, with
# glibc 2.31. Its own Python is 3.9, so that 3.11 is built in it, from Debian 12's source.
# Needs root, debootstrap and the processor of this machine.
#
#   --quiet   say only what failed
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/options.sh "$@"

root=$PWD/.tools/bullseye
# The source is removed last.
[ -x "$root/opt/python/bin/python3.11" ] && [ ! -d "$root/opt/source" ] && exit 0
command -v debootstrap > /dev/null || {
  echo "error: cannot find debootstrap; hint: apt-get install debootstrap" >&2
  exit 3
}
# What debootstrap mounts is gone with this namespace, however the script ends.
[ -n "${OWN_MOUNTS-}" ] || OWN_MOUNTS=yes exec unshare --mount "$0" "$@"

if [ -n "$quiet" ]; then
  exec 3>&2 > "$root.log" 2>&1
  trap '[ $? = 0 ] || tail -20 "$root.log" >&3' EXIT
fi
rm -rf "$root"
mkdir -p "$root"
debootstrap --variant=buildd \
  --include=ca-certificates,libbz2-dev,libffi-dev,liblzma-dev,libsqlite3-dev,libssl-dev,zlib1g-dev bullseye "$root"
cp --dereference /etc/resolv.conf "$root/etc/"
sed 's/^deb /deb-src /; s/ bullseye / bookworm /' "$root/etc/apt/sources.list" > "$root/etc/apt/sources.list.d/source.list"
chroot "$root" /bin/bash -eu -c '
  apt-get update -qq
  mkdir /opt/source
  cd /opt/source
  apt-get source -qq --tar-only python3.11
  tar --extract --strip-components=1 --file python3.11_*.orig.tar.*
  ./configure --quiet --prefix=/opt/python --without-ensurepip
  make --silent --jobs="$(nproc)"
  make --silent install
  rm -r /opt/source
'
