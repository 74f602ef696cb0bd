"""Parts of a study on loose hosts that ssh reaches, without a file system that they share.

Each host gets one part at a time, and the plan. What it records is copied back while it measures, seldom, by
one connection whose shell sleeps in between; the part goes on when that is lost. A host that does not answer
for a stated time is given up: its parts are placed again, and what it recorded is read when it is back.
"""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, DataError, SteelyardError
from steelyard.model.document import read_document, write_document
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.run.hosts.clocks import keep_readings
from steelyard.run.hosts.engine import Pending
from steelyard.run.hosts.ssh_copy import JOURNAL, OUTPUT, copy_part
from steelyard.run.hosts.ssh_session import HostAwayError, HostRefusedError, Session, printable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.run.hosts.fleet_file import Fleet, FleetHost

STATE_NAME: Final = "ssh.json"
STATE_SCHEMA: Final = "steelyard/ssh/1"
PART_FILE: Final = "part.json"
EXCERPT_FILE: Final = "part-plan.json"
STRIKES: Final = 2
"""Parts in a row that record nothing before a host is left out; one may have been killed."""
CANCEL_LOOK_S: Final = 1.0
"""Between two looks when everything is to end: then nothing is disturbed."""


ROUND_TRIPS: Final = 3
END_S: Final = 20.0
"""So long cancelling waits for the parts of hosts that answer."""


@dataclass(frozen=True, slots=True)
class State:
    """What was given to which host and may not be copied back yet.

    Parameters
    ----------
    key : str
        Name of the folder on each host, which no other result has.
    parts : dict
        Host by part.
    """

    key: str
    parts: dict[str, str]
    schema: str = STATE_SCHEMA


@dataclass(slots=True, eq=False)
class _Watched:
    """A host and what is known of it."""

    host: FleetHost
    seen_s: float
    wake: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    session: Session | None = None
    reason: str = ""
    """Why it does not answer."""
    problem: SteelyardError | None = None
    """Why it cannot run parts."""
    is_fit: bool = False
    is_tried: bool = False
    empty: int = 0
    """Its parts in a row that recorded nothing."""
    taken: int = 0
    """Its parts of those that were placed last."""
    replaced: set[str] = field(default_factory=set)
    """Its parts that were placed again: they end when it is back."""
    told: set[str] = field(default_factory=set)
    """Its parts that were told to end: told twice, they would stop at once and clean nothing up."""

    def silent_s(self) -> float:
        """Give how long it has said nothing."""
        session = self.session
        heard_s = self.seen_s if session is None else session.heard_s
        return time.monotonic() - max(self.seen_s, heard_s)


class SshEngine:
    """Runs parts on hosts by ssh.

    What is given to a host is written down before, so that a later process finds it there.

    Parameters
    ----------
    fleet : Fleet
        The hosts.
    folder : Path
        Folder of the parts, beside which the plan is.

    Raises
    ------
    DataError
        If what an earlier process wrote down is damaged.
    """

    is_here: Final = False
    names: Final = ()

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self._fleet = fleet
        self._folder = folder
        now_s = time.monotonic()
        self._hosts = {each.name: _Watched(each, now_s) for each in fleet.hosts}
        state = _read(folder / STATE_NAME)
        self._key, self._given = state.key, dict(state.parts)
        self._waiting: list[Path] = []
        self._changed = threading.Condition()
        self._is_placing = False
        self._has_placed = False
        self._is_cancelled = False
        self._failure: BaseException | None = None

    @property
    def size(self) -> int:
        """Hosts of the file."""
        return len(self._hosts)

    @property
    def width(self) -> int:
        """Hosts that answer and have this Steelyard.

        Raises
        ------
        CapabilityError
            If one cannot run parts as it is, before anything was placed, or none is left that can.
        """
        with self._changed:
            self._is_placing = True
            for each in self._hosts.values():
                self._watch(each)
                each.wake.set()
            self._changed.wait_for(lambda: self._failure or all(one.is_tried for one in self._hosts.values()))
            self._raise_failure()
            problems = [each.problem for each in self._hosts.values() if each.problem is not None]
            able = [each for each in self._hosts.values() if each.is_fit and each.problem is None]
            if problems and (not able or not self._has_placed):
                raise _listed(problems)
            if not able:
                raise _nobody([*self._hosts.values()])
            # Where all are given up, parts wait for the first that is back.
            away = [each for each in able if self._of(each) and each.silent_s() > self._fleet.lost_after_s]
            return max(len(able) - len(away), 1)

    def place(self, parts: Sequence[Path], _hosts: Sequence[str] = (), /) -> None:
        """Queue parts; each host takes the next one when it is free."""
        with self._changed:
            for name in self._lost():
                if given := self._hosts.get(self._given[name]):
                    given.replaced.add(name)
            self._has_placed = self._is_placing = True
            self._waiting += parts
            for each in self._hosts.values():
                each.taken = 0
                self._watch(each)
                if not self._of(each):
                    each.wake.set()

    def pending(self) -> Pending:
        """Give the parts that wait, and those of hosts that are not given up.

        Raises
        ------
        SteelyardError
            If what a host recorded cannot be written here, or no host is left that can run parts.
        """
        with self._changed:
            self._raise_failure()
            for each in self._hosts.values():
                self._watch(each)
            problems = [each.problem for each in self._hosts.values() if each.problem is not None]
            if self._waiting and len(problems) == len(self._hosts):
                raise _listed(problems)
            lost = self._lost()
            placed = {part.name for part in self._waiting} | (set(self._given) - lost)
            return Pending(frozenset(placed), tuple(self._reasons()), frozenset(lost))

    def cancel(self) -> None:
        """End what runs on the hosts that answer, and forget what waits."""
        with self._changed:
            self._is_cancelled = True
            self._waiting.clear()
            for each in self._hosts.values():
                each.wake.set()
            self._changed.wait_for(lambda: not any(map(self._is_ending, self._hosts.values())), END_S)

    def _is_ending(self, watched: _Watched) -> bool:
        """Whether a host that answers still has a part, or is being left."""
        is_served = watched.thread is not None and watched.problem is None
        return is_served and not watched.reason and watched.silent_s() <= 2 * self._fleet.look_s

    def _reasons(self) -> list[str]:
        unknown = sorted(set(self._given.values()) - set(self._hosts))
        found = [
            f"host `{name}` is not in the file of hosts any more; its parts are lost" for name in unknown
        ]
        for name, each in self._hosts.items():
            if each.problem is not None:
                found.append(f"host `{name}` is left out: {each.problem.message}")
            elif self._is_needed(each) and each.silent_s() > self._fleet.lost_after_s:
                limit = f"it has not answered for {self._fleet.lost_after_s:g} s"
                found.append(f"host `{name}` is given up: {limit}; what it records is read when it is back")
            elif self._is_needed(each) and each.reason:
                found.append(f"host `{name}` does not answer: {each.reason}")
        return found

    def _lost(self) -> set[str]:
        return {name for name, host in self._given.items() if self._is_given_up(self._hosts.get(host), name)}

    def _is_given_up(self, watched: _Watched | None, part: str) -> bool:
        if watched is None or watched.problem is not None or part in watched.replaced:
            return True
        return watched.silent_s() > self._fleet.lost_after_s

    def _of(self, watched: _Watched) -> list[str]:
        with self._changed:
            return [name for name, host in self._given.items() if host == watched.host.name]

    def _is_needed(self, watched: _Watched) -> bool:
        with self._changed:
            wants_more = self._is_placing and (bool(self._waiting) or not watched.is_tried)
            return watched.problem is None and (bool(self._of(watched)) or wants_more)

    def _watch(self, watched: _Watched) -> None:
        """Have a thread for a host that has something to do."""
        if watched.thread is None and self._is_needed(watched):
            watched.thread = threading.Thread(target=self._serve, args=(watched,), daemon=True)
            watched.thread.start()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _serve(self, watched: _Watched) -> None:
        """Connect to a host again and again, as long as it has something to do."""
        try:
            while self._goes_on(watched):
                try:
                    self._serve_connected(watched)
                except (HostAwayError, CapabilityError) as error:
                    if isinstance(error, CapabilityError) and not self._of(watched):
                        self._note(watched, problem=error)
                        return
                    # A host that has a part is not left out: what lets nobody in may pass.
                    self._note(watched, reason=str(error))
                    watched.wake.wait(CANCEL_LOOK_S if self._is_cancelled else self._fleet.look_s)
                    watched.wake.clear()
        except HostRefusedError as error:
            message = f"what host `{watched.host.name}` sent is not used: {error}"
            hint = "do you trust this host? what it recorded before is kept"
            self._note(watched, problem=DataError(message, hint=hint, code="data.ssh"))
        except BaseException as error:  # of a thread: whoever waits for it is told
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _goes_on(self, watched: _Watched) -> bool:
        with self._changed:
            if self._is_needed(watched):
                return True
            watched.thread = None
            self._changed.notify_all()
            return False

    def _note(self, watched: _Watched, *, reason: str = "", problem: SteelyardError | None = None) -> None:
        with self._changed:
            watched.reason, watched.problem, watched.is_tried = reason, problem, True
            watched.session = None
            if problem is not None:
                watched.thread = None
            self._changed.notify_all()

    def _serve_connected(self, watched: _Watched) -> None:
        with Session(watched.host, f"{watched.host.folder}/{self._key}") as session:
            watched.session = session
            has_plan = False
            while True:
                for name in self._of(watched):
                    self._look(watched, session, name)
                if self._is_placing and not watched.is_fit:
                    self._require_fit(watched.host, session)
                    watched.is_fit = True
                has_plan = self._give(watched, session, has_plan=has_plan)
                watched.seen_s = time.monotonic()
                self._note_answer(watched)
                if not self._is_needed(watched):
                    break
                watched.wake.wait(CANCEL_LOOK_S if self._is_cancelled else self._fleet.look_s)
                watched.wake.clear()
            session.leave()
            watched.session = None

    def _note_answer(self, watched: _Watched) -> None:
        with self._changed:
            watched.reason, watched.is_tried = "", watched.is_tried or watched.is_fit
            self._changed.notify_all()

    def _look(self, watched: _Watched, session: Session, name: str) -> None:
        """Copy what is new of a part; forget it when it is over and all of it is here."""
        state = session.ask("state", name)
        is_over = state != ["runs"]
        if is_over:
            self._read_clock(session, self._folder / name)
        copy_part(session, self._folder / name, is_over=is_over)
        if not is_over:
            if (self._is_cancelled or name in watched.replaced) and name not in watched.told:
                session.ask("end", name)
                watched.told.add(name)
            return
        session.ask("remove", name)
        with self._changed:
            del self._given[name]
            self._write()
            was_replaced = name in watched.replaced
            watched.replaced.discard(name)
        if state == ["over"] and not was_replaced and not self._is_cancelled:
            self._require_recording(watched, self._folder / name)

    @staticmethod
    def _read_clock(session: Session, part: Path) -> None:
        """Compare clocks, before a part and after it: nothing is measured there then."""
        keep_readings(part, filter(None, (session.clock() for _ in range(ROUND_TRIPS))))

    def _give(self, watched: _Watched, session: Session, *, has_plan: bool) -> bool:
        """Let a host that is free run the next part; tell whether it has the plan."""
        with self._changed:
            if self._is_cancelled or len(self._waiting) <= self._kept_for_others(watched):
                return has_plan
            if self._of(watched):
                return has_plan
            part = self._waiting.pop(0)
            watched.taken += 1
            self._given[part.name] = watched.host.name
            self._write()
        plan = self._folder.parent / PLAN_NAME
        if not has_plan and plan.exists():
            session.put(f"../{PLAN_NAME}", plan.read_bytes())
        for name in (EXCERPT_FILE, PART_FILE):
            if (part / name).exists():
                session.put(f"{part.name}/{name}", (part / name).read_bytes())
        self._read_clock(session, part)
        session.ask("begin", part.name)
        return plan.exists()

    def _kept_for_others(self, watched: _Watched) -> int:
        """Count the hosts that are free, answer and had fewer parts: a quick one leaves them theirs."""
        return sum(
            1
            for each in self._hosts.values()
            if each.taken < watched.taken
            and each.is_fit
            and each.problem is None
            and not self._of(each)
            and each.silent_s() <= self._fleet.lost_after_s
        )

    def _write(self) -> None:
        hint = "free some space there, then continue with --resume"
        write_document(self._folder / STATE_NAME, State(self._key, self._given), hint=hint)

    def _require_fit(self, host: FleetHost, session: Session) -> None:
        """Refuse a host with another Steelyard, or without what the plan runs."""
        mine = f"steelyard {version('steelyard')}"
        said = printable((session.ask("version") or [""])[0])
        if said.startswith("taskset: "):
            wanted = ", ".join(map(str, host.cpus or ()))
            message = f"host `{host.name}` cannot run parts: it has none of the CPUs {wanted}, or not for you"
            hint = "`taskset -p $$` there tells which it has: change `cpus` in the file of hosts"
            raise CapabilityError(message, hint=hint, code="capability.cpus")
        if said != mine:
            found = f"has `{said}`" if said.startswith("steelyard ") else f"answers `{said}`"
            message = (
                f"host `{host.name}` cannot run parts: `{host.steelyard[0]}` there {found}, not `{mine}`"
            )
            hint = (
                f"install that version there, `pip install {mine.replace(' ', '==')}`, or say in the file of "
                'hosts where it is, steelyard = "PATH"'
            )
            raise CapabilityError(message, hint=hint, code="capability.remote-version")
        if not (self._folder.parent / PLAN_NAME).exists():
            return  # hosts are asked what they are, before it is made
        plan = read_plan(self._folder.parent / PLAN_NAME)
        programs = {cell.execution.command[0] for cell in plan.cells if cell.execution is not None}
        for program in sorted(each for each in programs if each.startswith("/")):
            if not session.ask("has", program):
                message = f"host `{host.name}` has no program `{program}`"
                hint = "install the same version of Steelyard there, at the same place"
                raise CapabilityError(message, hint=hint, code="capability.remote-program")

    @staticmethod
    def _require_recording(watched: _Watched, part: Path) -> None:
        """Leave out a host whose parts end before they record anything: it would take one after another."""
        journals = part.glob(f"starts/*/{JOURNAL}")
        watched.empty = 0 if any(each.stat().st_size for each in journals) else watched.empty + 1
        if watched.empty < STRIKES:
            return
        output = part / OUTPUT
        text = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("hint:")]
        if not lines:
            message = f"host `{watched.host.name}` cannot run parts: it recorded nothing and said nothing"
            hint = f"is there space in `{watched.host.folder}` there, and memory?"
            raise CapabilityError(message, hint=hint, code="capability.ssh")
        said = printable(lines[-1].removeprefix("error: "))
        message = f"host `{watched.host.name}` cannot run parts: it recorded nothing and said: {said}"
        raise CapabilityError(message, hint=f"what it wrote is in `{output}`", code="capability.ssh")


def _listed(problems: Sequence[SteelyardError]) -> SteelyardError:
    first = problems[0]
    if len(problems) == 1:
        return first
    said = "\n".join(f"  {each.message} (hint: {each.hint})" for each in problems)
    message = f"{len(problems)} hosts cannot run parts:\n{said}"
    return CapabilityError(
        message, hint="repair them, or take them out of the file of hosts", code=first.code
    )


def _nobody(hosts: Sequence[_Watched]) -> CapabilityError:
    said = "; ".join(f"`{each.host.name}`: {each.reason}" for each in hosts)
    message = f"no host answers: {said}"
    first = hosts[0].host
    hint = f"is it up, and does it let you in without a password? ssh -o BatchMode=yes {first.target} true"
    return CapabilityError(message, hint=hint, code="capability.ssh")


def _read(path: Path) -> State:
    if not path.exists():
        return State(secrets.token_hex(8), {})
    hint = "remove it to place everything again; what hosts recorded and is not copied yet is lost"
    return read_document(path, State, STATE_SCHEMA, absent=hint, damaged=hint)
