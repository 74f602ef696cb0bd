"""What endpoints on other hosts wrote is brought here, and nothing of it stays there."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MAKE_AND_GUARD: Final = """[ -e "$2" ] && echo shared && exit
trap "" PIPE
mkdir -p "$(dirname "$1")" && mkdir "$1" || exit 1
: > "$2" && echo made && cat >/dev/null
rm -rf "$1"
"""
"""Its input ends with the script, and when the connection is lost: then the folder is removed."""
_BEGIN: Final = """folder={folder}
token=$(mktemp "$folder/.shared.XXXXXX") || exit
trap 'rm -f "$token" "$token.hold" "$token.told"; exec 3>&-; wait' EXIT
mkfifo "$token.hold" "$token.told" && exec 3<>"$token.hold" || exit
"""
_HOST: Final = """at_{number}() {{ {enter} "$@"; }}
(exec 3>&-; at_{number} sh -c {make} sh "$folder" "$token") <"$token.hold" >"$token.told" &
if ! read -r made_{number} <"$token.told"; then
echo "cannot create the folder $folder on host {number}" >&2; exit 1
fi
"""
_END: Final = """{command} 3>&-
status=$?
{fetches}
exit $status
"""


def fetched(command: Sequence[str], folder: Path, enters: Sequence[Sequence[str]]) -> str:
    """Give a script that runs a command whose endpoints write into a folder on several hosts.

    Each other host gets the folder, and what was written there is fetched and removed; it is removed there
    also when the script is killed, as soon as the connection is seen to be lost. Where hosts share a file
    system the folder is there already, which a file in it tells, and stays. A folder of the same name that
    is somebody else's is neither written to nor removed: the script ends with 1.

    Parameters
    ----------
    command : sequence of str
        Run here.
    folder : Path
        Exists here; the same path on all hosts.
    enters : sequence of sequence of str
        By host: the words that lead a command there; none for this host.
    """
    hosts = [(number, shlex.join(enter)) for number, enter in enumerate(enters, 1) if enter]
    fetch = '[ "$made_{0}" = shared ] || at_{0} tar -C "$folder" -cf - . | tar -C "$folder" -xf -'
    return "".join(
        [
            _BEGIN.format(folder=shlex.quote(str(folder))),
            *(
                _HOST.format(number=number, enter=enter, make=shlex.quote(_MAKE_AND_GUARD))
                for number, enter in hosts
            ),
            _END.format(
                command=shlex.join(command), fetches="\n".join(fetch.format(number) for number, _ in hosts)
            ),
        ]
    )
