# Packages of other releases of Debian than this machine's; sourced, after `scratch` is set to a folder.

keyring=/usr/share/keyrings/debian-archive-keyring
# The mirror this machine takes Debian from.
mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
  sed -n 's/^Debian //p' | head -1)

# Makes later calls of apt use Debian's suites $1... and nothing else; `foreign` may name an architecture
# beside this machine's.
use_suites() {
  if [ -z "$mirror" ] || ! compgen -G "$keyring.*" >/dev/null; then
    echo "error: no mirror of Debian among the sources of apt, or \`$keyring\` is not there" >&2
    return 3
  fi
  mkdir -p "$scratch"/apt/{sources,lists/partial,cache/archives/partial}
  printf '%s\n' 'Types: deb' "URIs: $mirror" "Suites: $*" 'Components: main' \
    "Signed-By: $(compgen -G "$keyring.*" | head -1)" > "$scratch/apt/sources/debian.sources"
  printf '%s;\n' 'Dir::Etc::sourcelist "/dev/null"' "Dir::Etc::sourceparts \"$scratch/apt/sources\"" \
    "Dir::State::lists \"$scratch/apt/lists\"" "Dir::Cache \"$scratch/apt/cache\"" \
    "APT::Architectures { \"$(dpkg --print-architecture)\"; ${foreign:+\"$foreign\";} }" \
    'APT::Sandbox::User "root"' 'Debug::NoLocking "1"' > "$scratch/apt.conf"
  export APT_CONFIG=$scratch/apt.conf
  apt-get update -qq
}
