"""A plan on other hosts: dealt into parts, placed, watched, placed again where a host was lost."""

from __future__ import annotations

import time
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import RunError, UsageError
from steelyard.record.provenance import end_session, read_provenance, write_provenance
from steelyard.run.executor.executor import ExecutionSummary
from steelyard.run.hosts.placement import ENGINE_NAME
from steelyard.studies.placed.absorbing import LATE_S, Absorber, with_hosts
from steelyard.studies.placed.parts import (
    PART_NAME,
    PARTS_PER_HOST,
    PLACED_NAME,
    deal,
    read_part,
    require_same_plan,
    write_excerpts,
    write_parts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from steelyard.model import Batch, Cell, Plan
    from steelyard.record.ledger import Ledger
    from steelyard.run.hosts.engine import Engine, Pending
    from steelyard.run.progress import Progress

LOOK_S: Final = 1.0
"""Between two looks at the journals and the engine; both are files and programs of this host."""
SETTLE_S: Final = 2.0
END_S: Final = 30.0
"""For processes that have nothing left to run."""
NETWORK_SETTLE_S: Final = 65.0
"""So long after the end of its process a part's last lines may become visible, here and over a network."""
_NETWORK: Final = frozenset(
    (
        *("nfs", "nfs4", "lustre", "gpfs", "beegfs", "beegfs_nodev", "cifs", "smb3", "ceph", "afs", "9p"),
        *("fuse.ceph", "fuse.glusterfs", "fuse.sshfs", "orangefs", "pvfs2", "panfs", "wekafs"),
    )
)
"""File systems that several hosts share; clients of NFS may keep a listing for a minute."""
_ENDED: Final = ("error: interrupted", "stopping; interrupt")
"""What a part says that was ended; who ended it said why before, e.g. that its time was over."""
STRIKES: Final = 3
"""Placements in a row that complete nothing before it is given up."""


class Failures(Enum):
    """Which failed runs end a placed study."""

    ALL_END = "all"
    """All, when all are over."""
    FIRST_ENDS = "first"
    """The first one, at once."""
    COUNT = "none"
    """None: they count."""


def file_system_of(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """Give the type of the file system that a folder lies on; empty where the system does not say it.

    Examples
    --------
    >>> file_system_of(Path("/proc"))
    'proc'
    """
    found = (0, "")
    with suppress(OSError):
        place = str(folder.resolve())
        for line in mounts.read_text(encoding="utf-8").splitlines():
            before, _, after = line.partition(" - ")
            point = before.split(" ", 5)[4].replace("\\040", " ")
            if place == point or place.startswith(point.rstrip("/") + "/"):
                found = max(found, (len(point), after.split(" ", 1)[0]), key=lambda each: each[0])
    return found[1]


def execute_placed(  # noqa: PLR0913 - keyword only
    plan: Plan,
    result: Path,
    ledger: Ledger,
    engine: Engine,
    progress: Progress,
    *,
    parts_per_host: int = PARTS_PER_HOST,
    failures: Failures = Failures.ALL_END,
    hosts_of: Callable[[Cell], tuple[str, ...]] = lambda _cell: (),
) -> ExecutionSummary:
    """Run what is left of a plan on the hosts of an engine.

    Parts that an earlier process placed and that are not over are waited for, not placed again. However
    this ends, the ledger has everything that was complete and readable by then.

    Parameters
    ----------
    plan : Plan
        Frozen plan.
    result : Path
        Result folder; its provenance is there.
    ledger : Ledger
        Of the same plan.
    engine : Engine
        Where parts are placed.
    progress : Progress
        Told what happens.
    parts_per_host : int
        Parts that the plan is dealt into, for each host.
    failures : Failures
        Which failed runs end it.
    hosts_of : callable
        Gives the hosts that a run of a cell needs, by name: a part has runs of the same hosts only.

    Raises
    ------
    UsageError
        If a run needs hosts that the engine does not have.
    RunError
        If placements complete nothing, every run failed, or one did that ends it.
    CapabilityError
        If the engine does not take parts.
    """
    driver = _Driver(plan, result, ledger, engine, progress, parts_per_host)
    driver.failures = failures
    driver.hosts_of = hosts_of
    try:
        driver.execute()
    except KeyboardInterrupt:
        engine.cancel()
        driver.settle()
        raise
    finally:
        found = with_hosts(end_session(read_provenance(result)), result, driver.remarks)
        write_provenance(result, found)
    return driver.summary()


class _Driver:
    def __init__(
        self,
        plan: Plan,
        result: Path,
        ledger: Ledger,
        engine: Engine,
        progress: Progress,
        parts_per_host: int,
    ) -> None:
        self._plan = plan
        self._ledger = ledger
        self._engine = engine
        self._progress = progress
        self._result = result
        self._root = result / PLACED_NAME
        is_shared = file_system_of(self._root) in _NETWORK
        self._settle_s = NETWORK_SETTLE_S if is_shared else SETTLE_S
        self._absorber = Absorber(result, ledger, progress.note, NETWORK_SETTLE_S if is_shared else LATE_S)
        # A folder without its file was never placed: whoever was writing it died.
        self._parts: dict[str, tuple[int, ...]] = {}
        for path in self._root.glob(f"part-*/{PART_NAME}"):
            part = read_part(path.parent)
            require_same_plan(path.parent, part, plan)
            self._parts[path.parent.name] = part.batches
        self._watched = set(self._parts)
        self._said: set[str] = set()
        self._began_s = time.monotonic()
        self._resumed, self._done = 0, 0
        self._left: dict[int, Batch] = {}
        self._parts_per_host = parts_per_host
        self.failures = Failures.ALL_END
        self.hosts_of: Callable[[Cell], tuple[str, ...]] = lambda _cell: ()

    def execute(self) -> None:
        self._absorber.absorb(self._watched)
        complete = self._ledger.completed_batches()
        self._left = {
            batch.number: batch
            for batch in self._plan.batches
            if batch.number not in complete and self._plan.cell_of(batch).execution is not None
        }
        self._resumed = len(complete)
        self._progress.begin(len(self._plan.batches), self._resumed)
        strikes = 0
        self._wait()
        while self._left:
            before = len(self._left)
            for hosts, batches in self._by_hosts().items():
                width = 1 if hosts else self._engine.width
                dealt = deal(batches, width, self._parts_per_host)
                parts = write_parts(self._result, self._plan.id, dealt)
                of_part = ([self._left[number] for number in numbers] for numbers in dealt)
                write_excerpts(self._plan, dict(zip(parts, of_part, strict=True)))
                self._parts |= {part.name: batches for part, batches in zip(parts, dealt, strict=True)}
                self._watched |= {part.name for part in parts}
                self._absorber.placing(part.name for part in parts)
                self._engine.place(parts, hosts)
            self._wait()
            strikes = 0 if len(self._left) < before else strikes + 1
            if strikes == STRIKES:
                raise self._nothing_done()
        self._wait_for_ends()
        self._engine.cancel()
        have_all_failed = all(status.is_failure for status in self._absorber.statuses)
        if self.failures is Failures.ALL_END and self._absorber.statuses and have_all_failed:
            message = f"all {self._absorber.statuses.total()} runs failed"
            raise RunError(message, hint=f"the hosts' logs are in `{self._root}`", code="run.all-failed")

    def _by_hosts(self) -> dict[tuple[str, ...], list[Batch]]:
        """Give what is left by the hosts that it needs.

        Raises
        ------
        UsageError
            If the engine does not have one.
        """
        found: dict[tuple[str, ...], list[Batch]] = {}
        for batch in self._left.values():
            found.setdefault(self.hosts_of(self._plan.cell_of(batch)), []).append(batch)
        needed = dict.fromkeys(name for hosts in found for name in hosts)
        names = self._engine.names if needed else ()
        if absent := [name for name in needed if name not in names]:
            message = f"the plan needs the host `{absent[0]}`, which `--on` does not offer"
            hint = f"hosts there: {', '.join(names) or 'none that is asked for by name'}"
            raise UsageError(message, hint=hint, code="usage.placement")
        return found

    def settle(self) -> None:
        """Take what is readable after the engine was told to end everything."""
        self._wait_for_ends()
        time.sleep(LOOK_S)
        self._absorb(self._watched, are_over=True)

    def _wait_for_ends(self) -> None:
        """Let processes with nothing left to run tidy up, and write what their hosts say of themselves."""
        deadline_s = time.monotonic() + END_S
        while (pending := self._engine.pending()) is None or pending.parts:
            if time.monotonic() > deadline_s:
                break
            time.sleep(LOOK_S)

    @property
    def remarks(self) -> list[str]:
        """What the reader of the result must know of the journals."""
        return self._absorber.remarks

    def summary(self) -> ExecutionSummary:
        statuses = dict(self._absorber.statuses)
        elapsed_s = time.monotonic() - self._began_s
        return ExecutionSummary(self._done, self._resumed, statuses, {}, {}, elapsed_s)

    def _is_unfinished(self, part: str) -> bool:
        """Whether a part still has something to run; one of another process may be unknown."""
        return any(batch in self._left for batch in self._parts.get(part, ()))

    def _wait(self) -> None:
        """Take what hosts record until no part with work left is pending, then what is left in the middle."""
        while True:
            pending = self._engine.pending()
            self._say(pending)
            self._absorb(self._watched)
            if pending is not None:
                quiet = self._watched - pending.parts - pending.lost
                over = {part for part in quiet if not self._is_unfinished(part)}
                self._absorb(over, are_over=True)
                self._watched -= over
                if not any(map(self._is_unfinished, pending.parts)):
                    break
            time.sleep(LOOK_S)
        over = self._watched - pending.lost
        deadline_s = time.monotonic() + self._settle_s
        while any(map(self._is_unfinished, over)) and time.monotonic() < deadline_s:
            time.sleep(LOOK_S)
            self._absorb(over)
        self._absorb(over, are_over=True)
        self._watched -= over

    def _absorb(self, parts: Iterable[str], *, are_over: bool = False) -> None:
        for batch in self._absorber.absorb(parts, are_over=are_over):
            if self._left.pop(batch, None) is not None:
                self._done += 1
                self._progress.batch_done(self._left_s(), self._failed())
        if self.failures is Failures.FIRST_ENDS and self._failed():
            self.failures = Failures.COUNT
            self._engine.cancel()
            self.settle()
            message = "a run failed on a host"
            raise RunError(message, hint=f"what the hosts wrote is in `{self._root}`", code="run.failed")

    def _left_s(self) -> float | None:
        if not self._done:
            return None
        return (time.monotonic() - self._began_s) / self._done * len(self._left)

    def _failed(self) -> int:
        return sum(count for status, count in self._absorber.statuses.items() if status.is_failure)

    def _say(self, pending: Pending | None) -> None:
        reasons = ("the engine does not answer; waiting",) if pending is None else pending.reasons
        for reason in reasons:
            if reason not in self._said:
                self._said.add(reason)
                self._progress.note(f"parts wait: {reason}" if pending is not None else reason)

    def _nothing_done(self) -> RunError:
        said_by_us = self._root / ENGINE_NAME
        outputs = [*(set(self._root.glob("*.txt")) - {said_by_us}), *self._root.glob("part-*/*.txt")]
        newest = sorted(outputs, key=lambda path: path.stat().st_mtime_ns, reverse=True)
        texts = (path.read_text(encoding="utf-8", errors="replace") for path in newest)
        lines = (line for text in texts for line in reversed(text.splitlines()))
        told = [line for line in lines if line.strip() and not line.startswith("hint:")]
        reasons = (line for line in told if not line.startswith(_ENDED))
        said = next(reasons, next(iter(told), "nothing")).removeprefix("error: ")
        message = f"{STRIKES} placements in a row completed no batch; the last host said: {said}"
        return RunError(message, hint=f"what the hosts wrote is in `{self._root}`", code="run.placed")
