#!/usr/bin/env bash
# Builds the service of orders (E3 of the replication study) into the user's cache, where it is not there
# already, and installs PostgreSQL without a cluster of its own. Needs Java 17 or later and Maven, root for
# packages.
#
#   --quiet   say only what failed
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/options.sh "$@"
packages=()
. scripts/packages.sh

if ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && ! command -v initdb >/dev/null; then
  # The package makes a cluster and starts it, unless it is told otherwise before it is installed.
  packages=(postgresql-common)
  install_packages || exit 3
  settings=/etc/postgresql-common/createcluster.d
  $sudo mkdir -p "$settings"
  echo 'create_main_cluster = false' | $sudo tee "$settings/steelyard.conf" >/dev/null
  packages=(postgresql)
  install_packages || exit 3
fi
packages=()
command -v mvn >/dev/null || packages+=(maven)
command -v javac >/dev/null || packages+=(openjdk-17-jdk-headless)
if [ ${#packages[@]} -gt 0 ]; then
  install_packages || exit 3
fi

cache=${XDG_CACHE_HOME:-$HOME/.cache}/steelyard/replication
place=$cache/service
sources=workloads/java/service
# What the archive is made of: the sources, and the Java that compiles them.
mark=$({
  find "$sources" -type f -not -path '*/target/*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
  cat "$0"
  javac -version
} 2>&1 | sha256sum | cut -d' ' -f1)
if [ -f "$place/service.jar" ] && [ "$(cat "$place/sources.sha256" 2>/dev/null)" = "$mark" ]; then
  say "the service is there: $place"
  exit 0
fi

begin=$SECONDS
mkdir -p "$cache"
scratch=$(mktemp -d "$cache/.service-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
say "building the service (Maven fetches its libraries the first time: one to three minutes)"
mvn --batch-mode --quiet -Dstyle.color=never --file "$sources/pom.xml" -Dsteelyard.build="$scratch/build" package || {
  echo "error: the service was not built" >&2
  echo >&2
  echo "hint: Maven needs its repository, or a mirror in ~/.m2/settings.xml" >&2
  exit 3
}
# Unpacked: an archive within an archive is opened slowly, and the start is measured.
java -Djarmode=tools -jar "$scratch/build/service.jar" extract --destination "$scratch/service"
echo "$mark" >"$scratch/service/sources.sha256"
# Whole or not at all; who has the old one open keeps it.
chmod 755 "$scratch/service"
if [ -e "$place" ]; then
  mv "$place" "$scratch/old"
fi
mv "$scratch/service" "$place"
# Classes as the virtual machine has loaded them once: a start takes half the time. It is a part of the build
# that may be missing. Paths count, so it is made where it stays; nothing is connected to.
java -XX:ArchiveClassesAtExit="$scratch/service.jsa" -Dspring.context.exit=onRefresh -Djava.io.tmpdir="$scratch" \
  -jar "$place/service.jar" --spring.datasource.url=jdbc:postgresql://127.0.0.1:1/none \
  --spring.datasource.hikari.initialization-fail-timeout=-1 --spring.jpa.database=postgresql \
  --spring.jpa.hibernate.ddl-auto=none \
  --spring.jpa.properties.hibernate.boot.allow_jdbc_metadata_access=false >"$scratch/archive.log" 2>&1 &&
  chmod 644 "$scratch/service.jsa" && mv "$scratch/service.jsa" "$place/service.jsa" ||
  say "without an archive of its classes the service starts slowly: $(tail -n 1 "$scratch/archive.log")"
say "built the service in $((SECONDS - begin)) s: $place"
