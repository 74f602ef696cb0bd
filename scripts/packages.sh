# What the deps scripts share; sourced, after `quiet` and `packages` are set.

say() { [ -n "$quiet" ] || echo "$@" >&2; }
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo

# Installs those of `packages` that are missing; 3 if one cannot be installed. Sets `missing`.
install_packages() {
  local package status=0
  if ! command -v apt-get >/dev/null; then
    echo "error: apt-get is not here; install by your system's means: ${packages[*]}" >&2
    exit 3
  fi
  missing=()
  for package in "${packages[@]}"; do
    dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    say "installing ${missing[*]}"
    $sudo apt-get update -qq || say "the package lists are not fresh"
    for package in "${missing[@]}"; do
      DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "$package" >/dev/null || {
        echo "could not install $package" >&2
        status=3
      }
    done
  fi
  return "$status"
}
