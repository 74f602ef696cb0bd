"""The client of one resident launcher: its process, its line protocol, its end."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from steelyard.errors import CapabilityError, RunError, UsageError
from steelyard.model import RunOutcome
from steelyard.run.cleanup import SESSION_VARIABLE, remove_tree
from steelyard.run.executor.clock import ClockOffset, Reading, offset_of
from steelyard.run.executor.outcome import failed_outcome

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import RunSpec
    from steelyard.run.isolation.interface import Isolation
    from steelyard.run.session import Site

    Request = dict[str, Any]
    Reply = dict[str, Any]
    """Lines of the protocol, see ``crates/model/src/protocol.rs``."""

PROTOCOL_VERSION: Final = 1
READ_BYTES: Final = 1 << 16
PING_COUNT: Final = 8
PING_TIMEOUT_S: Final = 10.0
QUIT_PATIENCE_S: Final = 5.0
END_PATIENCE_S: Final = 5.0
TAIL_LINES: Final = 6


class Worker:
    """A resident launcher in the place a technology gives it; a context manager that removes it.

    Start workers from a thread that lives as long as they do, the main thread: some of them are
    tied to the life of the thread that started them.

    Parameters
    ----------
    technology : Isolation
        Where it lives.
    site : Site
        Its name, folder and CPUs.
    """

    def __init__(self, technology: Isolation, site: Site) -> None:
        self.technology = technology
        self.site = site
        self.hello: Reply = {}
        self.start_ns = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()
        self._inbox: list[Reply] = []
        self._is_paused = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Prepare the place, start the launcher and wait for its first line.

        Raises
        ------
        CapabilityError
            If the technology cannot prepare the place.
        RunError
            If the launcher does not come up in time.
        """
        began_ns = time.monotonic_ns()
        self.site.folder.mkdir(parents=True)
        self.technology.prepare(self.site)
        command = self.technology.wrap(self.site)
        environment = {**os.environ, SESSION_VARIABLE: self.site.session.key}
        try:
            with self.site.log.open("ab") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=environment,
                    start_new_session=True,
                )
        except OSError as error:
            message = f"cannot start `{command[0]}`: {error.strerror}"
            raise CapabilityError(message, hint="steelyard doctor", code="capability.isolation") from error
        os.set_blocking(self.fileno(), False)
        self.hello = self.await_reply(self.technology.start_timeout_s, "did not come up")
        if self.hello.get("reply") != "hello" or self.hello.get("protocol") != PROTOCOL_VERSION:
            self.fail(f"speaks another protocol: {json.dumps(self.hello)[:200]}")
        self.start_ns = time.monotonic_ns() - began_ns

    @property
    def is_alive(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def fileno(self) -> int:
        """Give the descriptor its replies arrive on."""
        assert self._process is not None  # noqa: S101 - started
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        return self._process.stdout.fileno()

    def send(self, request: Request) -> None:
        """Send one request.

        Raises
        ------
        RunError
            If the worker is dead.
        UsageError
            If a word of the request is not UTF-8: an argument, a variable, a path.
        """
        assert self._process is not None  # noqa: S101 - started
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        line = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
        try:
            encoded = line.encode()
        except UnicodeEncodeError as error:
            message = f"`{not_text(request)}` is not UTF-8 text, which the launcher needs"
            raise UsageError(message, hint="put the command into a script, and give that") from error
        try:
            self._process.stdin.write(encoded + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            self.fail("hung up", error)

    def take_replies(self) -> list[Reply]:
        """Give the replies that are here; does not wait.

        Raises
        ------
        RunError
            If the worker ended, or wrote an unexpected line.
        """
        ended = self._read_all()
        replies, self._inbox = self._inbox, []
        if ended and not replies:
            self.fail("ended by itself")
        return replies

    def _read_all(self) -> bool:
        """Read what is there into the inbox; say whether the worker closed its output."""
        ended = False
        while not ended:
            try:
                chunk = os.read(self.fileno(), READ_BYTES)
            except BlockingIOError:
                break
            self._buffer += chunk
            ended = not chunk
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        self._inbox += [self._parse(line) for line in lines if line.strip()]
        return ended

    def await_reply(self, timeout_s: float, failing: str) -> Reply:
        """Wait for one reply.

        Parameters
        ----------
        timeout_s : float
            Patience [s].
        failing : str
            What to say of the worker if none comes, e.g. ``did not come up``.

        Raises
        ------
        RunError
            If none comes in time.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            ended = self._read_all()
            if self._inbox:
                return self._inbox.pop(0)
            if ended:
                self.fail("ended by itself")
            left = deadline - time.monotonic()
            if left <= 0:
                self.fail(f"{failing} within {timeout_s:g} s")
            select.select([self], [], [], left)

    def execute(self, spec: RunSpec, *, timeout_s: float) -> list[RunOutcome]:
        """Run one batch on this worker alone and give its outcomes.

        A worker that fails after some runs loses none of them: the others are given as failed.

        Parameters
        ----------
        spec : RunSpec
            For the host; it is adapted to the worker's place.
        timeout_s : float
            Patience for each reply [s].

        Raises
        ------
        RunError
            If the worker fails before the first outcome.
        """
        outcomes: list[RunOutcome] = []
        try:
            self._execute(spec, timeout_s, outcomes)
        except RunError as error:
            if not outcomes:
                raise
            first = spec.first_iteration
            owed = range(first + len(outcomes), first + spec.iterations)
            outcomes += [failed_outcome(spec.id, number, error.message) for number in owed]
        return outcomes

    def _execute(self, spec: RunSpec, timeout_s: float, outcomes: list[RunOutcome]) -> None:
        step = 1 if self.technology.one_launch_per_request else spec.iterations
        for first in range(spec.first_iteration, spec.first_iteration + spec.iterations, step):
            self._request(replace(spec, iterations=step, first_iteration=first), timeout_s, outcomes)

    def _request(self, spec: RunSpec, timeout_s: float, outcomes: list[RunOutcome]) -> None:
        self.send({"request": "prepare", "spec": self.technology.inside(spec, self.site).document()})
        self._expect("ready", timeout_s)
        self.send({"request": "go"})
        owed = spec.iterations
        while True:
            reply = self.await_reply(timeout_s, "did not answer")
            if reply["reply"] == "outcome":
                outcomes.append(self.outcome_of(reply))
                owed -= 1
            elif reply["reply"] == "done":
                if owed:
                    self.fail(f"was told to end {owed} runs before the last of {spec.iterations}")
                return
            elif reply["reply"] == "error":
                self.fail(f"could not continue: {reply['message']}")
            else:
                self.fail(f"answered `{reply['reply']}` instead of an outcome")

    def outcome_of(self, reply: Reply) -> RunOutcome:
        """Give the outcome that a reply carries, as the technology completes it.

        Raises
        ------
        RunError
            If the reply carries none.
        """
        try:
            outcome = RunOutcome.of(reply["outcome"])
        except (KeyError, ValueError) as error:
            self.fail(f"answered with {error}", error)
        return self.technology.collect(outcome, self.site)

    def clock_offset(self) -> ClockOffset:
        """Measure the offset of the worker's clocks to the host's: the tightest of some round trips."""
        readings = []
        for _ in range(PING_COUNT):
            sent_ns = time.monotonic_ns()
            self.send({"request": "ping"})
            pong = self._expect("pong", PING_TIMEOUT_S)
            readings.append(Reading(sent_ns, pong["monotonic_ns"], time.monotonic_ns()))
        return offset_of(readings)

    def pause(self) -> None:
        """Let it use no time until `resume`."""
        if not self._is_paused:
            self.technology.pause(self.site)
            self._is_paused = True

    def resume(self) -> None:
        """End a pause."""
        if self._is_paused:
            self.technology.resume(self.site)
            self._is_paused = False

    def close(self, patience_s: float = QUIT_PATIENCE_S) -> None:
        """End the launcher and remove everything of the worker. May be called in any state.

        Parameters
        ----------
        patience_s : float
            Time to leave by itself; 0 kills at once [s].
        """
        process = self._process
        if process is not None:
            if patience_s > 0:
                with suppress(RunError):
                    self.resume()
                    self.send({"request": "quit"})
            self._end(process, patience_s)
            self._process = None
        self.technology.tear_down(self.site)
        remove_tree(self.site.folder)

    def fail(self, what: str, cause: Exception | None = None) -> NoReturn:
        """Raise the error of this worker, with the last lines of its log."""
        tail = log_tail(self.site.log)
        message = f"the worker `{self.site.name}` {what}" + (f"; the end of its log: {tail}" if tail else "")
        hint = "`steelyard doctor` says whether this isolation works here; then repeat the command"
        if self.site.session.keeps_logs:
            hint = f"its log is `{self.site.log}`"
        raise RunError(message, hint=hint, code="run.worker") from cause

    def _expect(self, kind: str, timeout_s: float) -> Reply:
        reply = self.await_reply(timeout_s, f"did not answer with `{kind}`")
        if reply["reply"] == "error":
            raise RunError(reply["message"], hint=reply.get("hint"), code="run.worker")
        if reply["reply"] != kind:
            self.fail(f"answered `{reply['reply']}` instead of `{kind}`")
        return reply

    def _parse(self, line: bytes) -> Reply:
        try:
            reply: Any = json.loads(line)
        except ValueError as error:
            text = line.decode(errors="replace")[:200]
            self.fail(f"wrote an unexpected line, `{text}`", error)
        if not isinstance(reply, dict) or "reply" not in reply:
            self.fail(f"wrote an unexpected line, `{reply}`")
        return reply

    def _end(self, process: subprocess.Popen[bytes], patience_s: float) -> None:
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        for end, patience in ((None, patience_s), (process.terminate, END_PATIENCE_S), (process.kill, None)):
            if end is not None:
                end()
            elif patience == 0:
                continue
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=patience)
                break
        if process.stdout is not None:
            process.stdout.close()


def log_tail(path: Path) -> str:
    """Give the last lines of a log, joined; the empty text if there are none."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "; ".join(line.strip() for line in lines[-TAIL_LINES:] if line.strip())


def not_text(document: object) -> str:
    r"""Give the first text in a document that has bytes which are no UTF-8, with these as escapes.

    Examples
    --------
    >>> print(not_text({"command": ["echo", "caf\udce9"]}))
    caf\xe9
    """
    if isinstance(document, dict):
        return next(filter(None, map(not_text, (*document, *document.values()))), "")
    if isinstance(document, list):
        return next(filter(None, map(not_text, document)), "")
    if isinstance(document, str) and any("\ud800" <= letter <= "\udfff" for letter in document):
        return document.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return ""
