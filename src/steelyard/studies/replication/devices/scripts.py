"""What is run by ``sh`` wherever a role lives: here, in a container, on another host.

A program's first act is to write down which process it is, so that it can be found again from outside
whatever stands in between (an engine's client, ssh).
"""

from __future__ import annotations

from typing import Final

JOIN: Final = """
# sh -c JOIN sh COUNT FILE... COMMAND...
count=$1; shift
while [ "$count" -gt 0 ]; do
  echo $$ > "$1" || exit 125
  shift; count=$((count - 1))
done
exec "$@"
"""
"""Enters control groups before it runs a command."""

START: Final = """
# sh -c START sh RECORD FOLDER COMMAND...
record=$1; folder=$2; shift 2
IFS= read -r line < /proc/$$/stat
set -- "$line" "$@"; rest=${1##*) }; shift
began=$(set -- $rest; echo "${20}")
session=$(set -- $rest; echo "$4")
echo "$$ $began $session" > "$record.new" && mv "$record.new" "$record" && cd "$folder" || exit 125
exec env -i sh -c '. "$0"; exec "$@"' "$record.environment" "$@"
"""
"""SOURCE: proc(5): behind the name in parentheses, the 4th word of ``stat`` is the session, the 20th the
start time, which tells a process from a later one with its number. The environment is read from a file, so
that it stands in no list of processes: there may be a password in it."""

_FIND: Final = """
record=$1; marker=$2
tries=0
while [ ! -s "$record" ] && [ $tries -lt 100 ]; do tries=$((tries + 1)); sleep 0.02; done
read -r first first_began first_session < "$record" || exit 0
look() {
  IFS= read -r line 2>/dev/null < "/proc/$1/stat" || return 1
  set -- ${line##*) }
  state=$1; parent=$2; session=$4; began=${20}
  case $state in Z|X) return 1;; esac
}
"""

TERMINATE: Final = (
    _FIND
    + """
look "$first" && [ "$began" = "$first_began" ] && kill -TERM "$first"
exit 0
"""
)
"""``sh -c TERMINATE sh RECORD MARKER``: asks the program to end."""

KILL: Final = (
    _FIND
    + """
found=" "; sessions=" "; is_ours=1
if look "$first"; then
  if [ "$began" = "$first_began" ]; then found=" $first "; else is_ours=; fi
fi
[ -n "$is_ours" ] && [ "$first" = "$first_session" ] && sessions=" $first "
round=0
while [ $round -lt 200 ]; do
  round=$((round + 1))
  alive=
  marked=" $(grep -lsF "$marker" /proc/[0-9]*/environ | tr -c '0-9\\n' ' ' | tr '\\n' ' ') "
  grew=1
  while [ -n "$grew" ]; do
    grew=
    for stat in /proc/[0-9]*/stat; do
      process=${stat#/proc/}; process=${process%/stat}
      case $found in *" $process "*) continue;; esac
      look "$process" || continue
      [ "$process" = "$$" ] && continue
      mine=
      case $found in *" $parent "*) mine=1;; esac
      case $sessions in *" $session "*) mine=1;; esac
      case $marked in *" $process "*) mine=1;; esac
      [ -n "$mine" ] || continue
      found="$found$process "; grew=1
      [ "$session" = "$process" ] && sessions="$sessions$process "
    done
  done
  for process in $found; do
    look "$process" && { kill -KILL "$process" 2>/dev/null; alive=1; }
  done
  [ -n "$alive" ] || break
  found=" "
  sleep 0.02
done
exit 0
"""
)
"""``sh -c KILL sh RECORD MARKER``: ends the program, what descends from it, what lives in a session that any
of these leads, and what holds the marker in its environment; returns when all of it is gone. A number that
another process has got by now is nobody's session: the kernel gives none away that is still a session's."""
