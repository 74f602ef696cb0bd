"""One connection to a host that runs parts of a study: a shell there that answers, and sleeps in between.

The host is not trusted: every answer has a bound and a time, and nothing of it is taken as a path here.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from steelyard.errors import CapabilityError
from steelyard.run.hosts.clocks import ClockReading, now_ns
from steelyard.run.hosts.hostfile import Host
from steelyard.run.hosts.ssh import CONNECT_S, PINNED, login_refused

if TYPE_CHECKING:
    from types import TracebackType

    from steelyard.run.hosts.fleet_file import FleetHost

ANSWER_S: Final = 60.0
SLOWEST_BYTES_PER_S: Final = 1 << 16
"""An answer may take `ANSWER_S`, and a second more for each so many bytes."""
LONGEST_TEXT_BYTES: Final = 1 << 26
"""A listing of 500 000 files."""
LONGEST_SHOWN: Final = 200
CHUNK_BYTES: Final = 1 << 22
REFUSED: Final = ("Host key verification failed", "Permission denied (", "Bad configuration option")
NOT_FIT: Final = ("is not installed", "mkdir: ", "can't cd to")
"""What ssh, and the shell there, say of what does not pass by waiting."""
_NANOSECONDS: Final = re.compile(r"[0-9]{19}", re.ASCII)
STRICT: Final = ("-o", "StrictHostKeyChecking=yes", "-o", "ClearAllForwardings=yes")

ANSWERING: Final = r"""
# MARK FOLDER COMMAND...
umask 077
LC_ALL=C; export LC_ALL
home() { case $1 in "~/"*) printf %s "$HOME/${1#"~/"}" ;; *) printf %s "$1" ;; esac; }
mark=$1; root=$(home "$2"); shift 2
count=$#
for word; do set -- "$@" "$(home "$word")"; done
shift "$count"
for program in flock setsid find tail taskset; do
  command -v "$program" > /dev/null || { echo "$program is not installed" >&2; exit 1; }
done
mkdir -p -- "$root/placed" && cd -- "$root/placed" || exit 1
printf '\n%s\n' "$mark"
is_over() { flock -n -E 100 9 9>> "$1/alive"; case $? in 0) ;; 100) return 1 ;; *) exit 1 ;; esac; }
while IFS= read -r line; do
  verb=${line%% *}; part=${line#* }
  case $verb in
    version) echo "$("$@" --version < /dev/null 2>&1 | tail -n 1 | head -c 1000)" ;;
    clock) date +%s%N ;;
    has) [ -x "$part" ] && echo yes ;;
    put)
      size=${part%% *}; part=${part#* }
      mkdir -p -- "${part%/*}" && head -c "$size" > "$part.new" && mv -f -- "$part.new" "$part" || exit 1 ;;
    begin)
      mkdir -p -- "$part" && exec 9>> "$part/alive" || exit 1
      if [ ! -e "$part/begun" ] && flock -w 5 9 && mkdir -- "$part/begun" 2> /dev/null; then
        setsid sh -c 'echo "$$" >&9; exec "$@"' sh "$@" run-part "$PWD/$part" \
          < /dev/null >> "$part/output.txt" 2>&1 &
      fi
      exec 9>&- ;;
    state)
      [ -e "$part/begun" ] || mkdir -p -- "$part" || exit 1
      if [ ! -e "$part/begun" ] && mkdir -- "$part/begun" 2> /dev/null; then echo never
      elif is_over "$part"; then echo over
      else echo runs; fi ;;
    end) is_over "$part" || kill -TERM "$(head -n 1 -- "$part/alive")" ;;
    starts)
      find "$part/starts" -mindepth 2 -maxdepth 2 -type f -printf '%s %P\n' 2> /dev/null
      find "$part/starts" -mindepth 3 -maxdepth 3 -type d -path '*/traces/*' ! -name '.*' -printf 'd %P\n' \
        2> /dev/null ;;
    files) find "$part" -mindepth 1 -maxdepth 1 -type f ! -name '.*' -printf '%s %P\n' 2> /dev/null ;;
    bytes)
      from=${part%% *}; part=${part#* }; size=${part%% *}; part=${part#* }
      {
        tail -c "+$from" -- "$part" 2> /dev/null | head -c "$size"
        printf '.\n'
        head -c "$size" /dev/zero
      } | head -c "$((size + 2))"
      continue ;;
    remove) flock -n "$part/alive" rm -rf -- "$part" ;;
    leave) cd / && rmdir -- "$root/placed" && rm -f -- "$root/plan.json" && rmdir -- "$root"; exit ;;
  esac
  echo .
done
"""
"""What answers there. A lock that a part's process holds says that it runs; the kernel frees it, however
that ends. A part begins once, whoever asks: the folder ``begun`` is made by one, and by asking for its state.
"""


class HostAwayError(ConnectionError):
    """A host does not answer; what it was doing may go on."""


class HostRefusedError(ConnectionError):
    """What a host sent cannot be used."""


class Session:
    """A connection, as a context manager.

    Parameters
    ----------
    host : FleetHost
        Which host.
    folder : str
        Folder there, in which parts lie below ``placed``.

    Raises
    ------
    HostAwayError
        On entry and later, if it does not answer in time.
    CapabilityError
        On entry, if it lets nobody in, its key is not known, or it lacks what is needed.
    """

    def __init__(self, host: FleetHost, folder: str) -> None:
        self._host = host
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._read = bytearray()
        self.heard_s = time.monotonic()

    def __enter__(self) -> Self:
        """Connect."""
        mark = f"steelyard-{secrets.token_hex(8)}"
        bound = self._host.cpus
        command = [] if bound is None else ["taskset", "--cpu-list", ",".join(map(str, bound))]
        words = [mark, self._folder, *command, *self._host.steelyard]
        script = ANSWERING.encode()
        # Any shell of the user's understands this line; what it is to run comes through the connection.
        quoted = " ".join(_quoted(word) for word in words)
        line = f"exec sh -c 'eval \"$(head -c {len(script)})\"' sh {quoted}"
        port = () if self._host.port is None else ("-p", str(self._host.port))
        ssh = ["ssh", *PINNED, *STRICT, *port, *self._host.ssh_options, "--", self._host.target, line]
        try:
            self._process = subprocess.Popen(
                ssh,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            message = f"cannot reach host `{self._host.name}`: cannot start ssh: {error.strerror}"
            hint = "apt-get install openssh-client"
            raise CapabilityError(message, hint=hint, code="capability.ssh") from error
        try:
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                assert pipe is not None  # noqa: S101 - pipes were asked for
                os.set_blocking(pipe.fileno(), False)
            self._write(script)
            deadline = time.monotonic() + CONNECT_S + ANSWER_S
            while self._line(deadline) != mark:
                pass
        except HostAwayError as error:
            self.close()
            raise self._refusal(str(error)) from error
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the connection; what runs there goes on."""
        self.close()

    def ask(self, verb: str, what: str = "") -> list[str]:
        """Give the lines of an answer."""
        self._write(f"{verb} {what}\n".encode())
        deadline = time.monotonic() + ANSWER_S
        left = LONGEST_TEXT_BYTES
        lines: list[str] = []
        while (line := self._line(deadline)) != ".":
            left -= len(line) + 1
            if left < 0:
                message = f"its answer to `{verb}` is longer than {LONGEST_TEXT_BYTES} bytes"
                raise HostRefusedError(message)
            lines.append(line)
        return lines

    def clock(self) -> ClockReading | None:
        """Read the clock there, by one round trip; ``None`` where its ``date`` does not say nanoseconds."""
        before_ns = now_ns()
        said = self.ask("clock")
        after_ns = now_ns()
        if len(said) != 1 or not _NANOSECONDS.fullmatch(said[0]) or after_ns < before_ns:
            return None
        return ClockReading(before_ns, int(said[0]), after_ns)

    def put(self, name: str, content: bytes) -> None:
        """Write a file there, below ``placed``."""
        self._write(f"put {len(content)} {name}\n".encode() + content)
        if self._line(time.monotonic() + ANSWER_S + len(content) / SLOWEST_BYTES_PER_S) != ".":
            message = f"it cannot write `{name}`"
            raise HostRefusedError(message)

    def read(self, name: str, begin: int, size: int) -> bytes:
        """Give bytes of a file below ``placed``; all of them, or the host is refused."""
        self._write(f"bytes {begin + 1} {size} {name}\n".encode(errors="surrogateescape"))
        deadline = time.monotonic() + ANSWER_S + size / SLOWEST_BYTES_PER_S
        while len(self._read) < size + 2:
            self._more(deadline)
        found = bytes(self._read[: size + 2])
        del self._read[: size + 2]
        if found[size:] != b".\n":
            message = f"`{printable(name)}` is shorter than it said"
            raise HostRefusedError(message)
        return found[:size]

    def leave(self) -> None:
        """Remove the folder there, unless parts are left in it."""
        with suppress(HostAwayError):
            self._write(b"leave\n")
            while True:
                self._more(time.monotonic() + ANSWER_S)

    def close(self) -> None:
        """End the connection."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None  # noqa: S101 - pipes were asked for
            pipe.close()
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _line(self, deadline: float) -> str:
        while (end := self._read.find(b"\n")) < 0:
            if len(self._read) > CHUNK_BYTES:
                message = "it sends a line without end"
                raise HostRefusedError(message)
            self._more(deadline)
        line = self._read[:end].decode(errors="surrogateescape")
        del self._read[: end + 1]
        return line

    def _more(self, deadline: float) -> None:
        process = self._running()
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        self._wait(process.stdout.fileno(), select.POLLIN, deadline)
        content = os.read(process.stdout.fileno(), CHUNK_BYTES)
        if not content:
            raise HostAwayError(self._said())
        self._read += content
        self.heard_s = time.monotonic()

    def _write(self, content: bytes) -> None:
        process = self._running()
        assert process.stdin is not None  # noqa: S101 - a pipe was asked for
        left = memoryview(content)
        deadline = time.monotonic() + CONNECT_S + ANSWER_S + len(content) / SLOWEST_BYTES_PER_S
        while left:
            self._wait(process.stdin.fileno(), select.POLLOUT, deadline)
            try:
                left = left[os.write(process.stdin.fileno(), left) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as error:
                raise HostAwayError(self._said()) from error

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            message = "the connection is closed"
            raise HostAwayError(message)
        return self._process

    @staticmethod
    def _wait(descriptor: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not poll.poll(left_s * 1000):
            message = "no answer in time"
            raise HostAwayError(message)

    def _said(self) -> str:
        """Give what ssh or the shell there wrote last."""
        process = self._running()
        assert process.stderr is not None  # noqa: S101 - a pipe was asked for
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)
        said = b""
        with suppress(BlockingIOError):
            said = os.read(process.stderr.fileno(), 1 << 13)
        lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
        return "\n".join(map(printable, lines)) or "the connection ended"

    def _refusal(self, said: str) -> CapabilityError | HostAwayError:
        """Tell what does not pass by waiting from what may."""
        last = said.splitlines()[-1]
        if any(words in said for words in NOT_FIT):
            message = f"host `{self._host.name}` cannot run parts: {last}"
            hint = f"it needs util-linux and findutils, and `{self._folder}` must be a folder to write to"
            return CapabilityError(message, hint=hint, code="capability.ssh")
        if any(words in said for words in REFUSED):
            user, at, name = self._host.target.rpartition("@")
            return login_refused(Host(name, user if at else None), said, str(self._host.port or 22))
        return HostAwayError(last)


def printable(text: str) -> str:
    """Give the begin of what a host said, without what would steer a terminal."""
    return "".join(each if each.isprintable() else "?" for each in text[:LONGEST_SHOWN])


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
