#!/usr/bin/env bash
# Installs what the isolation technologies need: their packages, and the kernel of the virtual
# machine's guest, unpacked into the user's cache. Needs root for packages, Debian or Ubuntu.
#
#   --quiet   say only what failed
#   --demo    only what a quick study uses: one container technology and the virtual machine
set -euo pipefail

quiet=
packages=(docker.io podman crun runc bubblewrap systemd-container qemu-system-x86 stress-ng busybox-static)
for word in "$@"; do
  case $word in
    --quiet) quiet=yes ;;
    --demo) packages=(podman runc qemu-system-x86) ;;
    *) echo "error: \`$word\` is no option; allowed: --quiet, --demo" >&2; exit 2 ;;
  esac
done

. "$(dirname "$0")/packages.sh"
# What could not be installed is named, and the technologies that need it are absent.
install_packages || true

cache=${XDG_CACHE_HOME:-$HOME/.cache}/steelyard/guest
# What the kernel keeps apart from itself and the tests of shaped links need.
modules=(veth sch_htb sch_tbf sch_netem)
if compgen -G "$cache/vmlinuz-*" >/dev/null && compgen -G "$cache/modules-*/veth.ko" >/dev/null; then
  say "the guest kernel is there: $(compgen -G "$cache/vmlinuz-*" | tail -1)"
  exit 0
fi

# The smallest kernel of the distribution that knows the devices of a virtual machine.
kernel=
for meta in linux-image-cloud-amd64 linux-image-virtual linux-image-amd64 linux-image-generic; do
  kernel=$(apt-cache depends "$meta" 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ { print $2; exit }')
  [ -z "$kernel" ] || break
done
if [ -z "$kernel" ]; then
  echo "error: no kernel package found; set STEELYARD_GUEST_KERNEL to a kernel (bzImage)" >&2
  exit 3
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
say "fetching the guest kernel $kernel"
(cd "$scratch" && apt-get download -qq "$kernel" 2>/dev/null) || {
  $sudo apt-get update -qq && (cd "$scratch" && apt-get download -qq "$kernel")
}
dpkg-deb --fsys-tarfile "$scratch"/*.deb |
  tar -x -C "$scratch" --wildcards './boot/vmlinuz-*' $(printf -- '*/%s.ko* ' "${modules[@]}")
mkdir -p "$cache"
install -m 644 "$scratch"/boot/vmlinuz-* "$cache/"
place=$cache/modules-$(basename "$scratch"/boot/vmlinuz-* | sed 's/^vmlinuz-//')
mkdir -p "$place"
find "$scratch" -name '*.ko*' | while read -r module; do
  case $module in
    *.xz) xz -dc "$module" > "$place/$(basename "$module" .xz)" ;;
    *.zst) zstd -dcq "$module" > "$place/$(basename "$module" .zst)" ;;
    *) install -m 644 "$module" "$place/" ;;
  esac || echo "could not unpack $module" >&2
done
say "the guest kernel is in $cache"
