#!/usr/bin/env bash
# Installs what the replication study executes in other languages, and builds its programs into the user's
# cache: packages of the distribution (needs root, Debian-like), libraries from Maven Central and PyPI
# through their ordinary clients, each checked against a checksum. What is built already is left alone.
#
#   --quiet   say only what failed
set -euo pipefail

. "$(dirname "$0")/options.sh" "$@"

scripts=$(cd "$(dirname "$0")" && pwd)
workloads=$(dirname "$scripts")/workloads
java_release=17

# Release of the compiler that is there; 0: none.
compiler_release() { javac -version 2>/dev/null | sed -n 's/^javac \([0-9]*\).*/\1/p' | grep . || echo 0; }

packages=(maven python3-venv)
if [ "$(compiler_release)" -lt $java_release ]; then
  # The distribution's own release where it has not this one.
  jdk=default-jdk-headless
  if apt-cache show openjdk-$java_release-jdk-headless >/dev/null 2>&1; then
    jdk=openjdk-$java_release-jdk-headless
  fi
  packages+=("$jdk")
fi
. "$scripts/packages.sh"
install_packages

place=${XDG_CACHE_HOME:-$HOME/.cache}/steelyard/replication
mkdir -p "$place"
exec 9>"$place/.lock"
flock 9
scratch=$(mktemp -d "$place/.building-XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# One checksum over everything the build of the Java sources in $1... depends on.
state_of() {
  find "$@" -type f -not -path '*/target/*' -print0 | LC_ALL=C sort -z | { xargs -0 cat; javac -version 2>&1; } |
    sha256sum | cut -d' ' -f1
}

# Whether $1 was built from the state $2.
is_built() { [ "$(cat "$place/$1/built-from" 2>/dev/null)" = "$2" ]; }

# Puts what was built in the scratch folder, from the state $2, where it is looked for as $1; who has the old
# one open keeps it.
put_in_place() {
  echo "$2" > "$scratch/$1/built-from"
  chmod 755 "$scratch/$1"
  if [ -e "$place/$1" ]; then mv "$place/$1" "$scratch/old-$1"; fi
  mv "$scratch/$1" "$place/$1"
}

has_libraries() { [ -d "$1" ] && (cd "$1" && sha256sum --check --status --strict "$source/libraries.sha256") 2>/dev/null; }

build_benchmarks() {
  local source=$workloads/java/benchmarks
  local target=$scratch/benchmarks state jars
  state=$(state_of "$source")
  if is_built benchmarks "$state"; then say "the benchmarks are built"; return; fi
  mkdir -p "$target/classes"
  if has_libraries "$place/benchmarks"; then
    cp -r "$place/benchmarks/jmh" "$place/benchmarks/agents" "$target/"
  else
    say "fetching JMH, Kieker and the agent of OpenTelemetry from Maven Central"
    mvn -B -q -Dstyle.color=never -f "$source/pom.xml" -Dlibraries="$target" \
      dependency:copy-dependencies@jmh dependency:copy@agents || {
      echo "error: Maven could not fetch the libraries of the benchmarks" >&2
      echo >&2
      echo "hint: it needs Maven Central, or a mirror in ~/.m2/settings.xml" >&2
      return 3
    }
    if ! has_libraries "$target"; then
      echo "error: what Maven fetched differs from workloads/java/benchmarks/libraries.sha256" >&2
      echo >&2
      echo "hint: empty ~/.m2/repository, and look at what stands between this host and Maven Central" >&2
      return 3
    fi
  fi
  say "compiling the benchmarks"
  jars=$(echo "$target"/jmh/*.jar | tr ' ' ':')
  find "$source/src/main/java" -name '*.java' -print0 |
    xargs -0 javac --release $java_release -nowarn -d "$target/classes" -cp "$jars" -processorpath "$jars"
  cp -r "$source/src/main/resources/." "$target/classes/"
  jar --create --file "$target/benchmarks.jar" -C "$target/classes" .
  rm -r "$target/classes"
  put_in_place benchmarks "$state"
}

build_python() {
  local source=$workloads/python
  local interpreter=/usr/bin/python3 state
  [ -x $interpreter ] || interpreter=python3
  state=$({ cat "$source/requirements.txt"; $interpreter --version; } | sha256sum | cut -d' ' -f1)
  if is_built python "$state"; then
    say "OpenTelemetry for Python is installed"
  else
    say "installing OpenTelemetry for Python from PyPI"
    # Executed as bin/python, which finds the folder by itself: it is moved, and elsewhere in a container.
    $interpreter -m venv "$scratch/python"
    "$scratch/python/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
      --only-binary :all: --require-hashes -r "$source/requirements.txt"
    put_in_place python "$state"
  fi
  if ! cmp -s "$source/monitored.py" "$place/python/monitored.py"; then
    cp "$source/monitored.py" "$scratch/"
    mv "$scratch/monitored.py" "$place/python/monitored.py"
  fi
}

build_benchmarks
build_python
if [ -f "$scripts/build-service.sh" ]; then
  bash "$scripts/build-service.sh" ${quiet:+--quiet}
fi
