"""One batch on the workers of its cell: prepared together, released together, heard out together."""

from __future__ import annotations

import json
import select
import time
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from steelyard.errors import RunError
from steelyard.run.executor.outcome import failed_outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.model import RunOutcome, RunSpec
    from steelyard.run.executor.worker import Reply, Request, Worker

    OutcomeSink = Callable[[int, RunOutcome], None]
    """Takes the worker's index and an outcome."""


class _State(Enum):
    PREPARING = auto()
    READY = auto()
    RUNNING = auto()
    DONE = auto()
    FAILED = auto()


@dataclass(slots=True)
class Share:
    """One worker's part of a batch.

    Parameters
    ----------
    worker : Worker
        A started worker.
    spec : RunSpec
        Its run specification, adapted to its place.
    """

    worker: Worker
    spec: RunSpec
    state: _State = field(default=_State.PREPARING, init=False)
    heard: set[int] = field(default_factory=set, init=False)
    failure: str | None = field(default=None, init=False)
    last_heard: float = field(default_factory=time.monotonic, init=False)

    @property
    def iterations(self) -> range:
        """Give the iterations it owes."""
        return range(self.spec.first_iteration, self.spec.first_iteration + self.spec.iterations)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self.state in {_State.DONE, _State.FAILED}

    def prepare(self) -> None:
        """Ask for the batch, or for its next single launch."""
        self.state = _State.PREPARING
        self.last_heard = time.monotonic()
        self._guarded({"request": "prepare", "spec": self._next_spec().document()})

    def go(self) -> None:
        """Open the gate."""
        self.state = _State.RUNNING
        self.last_heard = time.monotonic()
        self._guarded({"request": "go"})

    def listen(self) -> list[RunOutcome]:
        """Take what the worker said; give the outcomes among it."""
        try:
            replies = self.worker.take_replies()
        except RunError as error:
            self.fail(error.message)
            return []
        return [outcome for reply in replies for outcome in self._take(reply)]

    def fail(self, message: str) -> None:
        """Give the share up."""
        if not self.is_over:
            self.failure = message
            self.state = _State.FAILED

    def missing(self) -> list[RunOutcome]:
        """Give a failed outcome for every iteration that was never heard of."""
        if self.failure is None:
            return []
        owed = [number for number in self.iterations if number not in self.heard]
        return [failed_outcome(self.spec.id, number, self.failure) for number in owed]

    def _take(self, reply: Reply) -> list[RunOutcome]:
        self.last_heard = time.monotonic()
        match reply["reply"]:
            case "ready":
                self.state = _State.READY
                if self.heard:
                    self.go()
            case "outcome":
                outcome = self.worker.outcome_of(reply)
                self.heard.add(outcome.iteration)
                return [outcome]
            case "done":
                self._finish()
            case "error":
                self.fail(reply["message"])
            case _:
                self.fail(f"the worker answered {json.dumps(reply)[:200]}")
        return []

    def _finish(self) -> None:
        if len(self.heard) == len(self.iterations):
            self.state = _State.DONE
        elif self.worker.technology.one_launch_per_request:
            self.prepare()
        else:
            self.fail(f"the worker reported {len(self.heard)} of {len(self.iterations)} iterations")

    def _next_spec(self) -> RunSpec:
        if not self.worker.technology.one_launch_per_request:
            return self.spec
        number = self.iterations.start + len(self.heard)
        barrier = None if self.heard else self.spec.barrier
        return replace(self.spec, iterations=1, first_iteration=number, barrier=barrier)

    def _guarded(self, request: Request) -> None:
        try:
            self.worker.send(request)
        except RunError as error:
            self.fail(error.message)


def execute_batch(shares: Sequence[Share], patience_s: float, sink: OutcomeSink) -> str | None:
    """Run a batch: prepare all shares, release them together, hear all out.

    A worker that dies, refuses or falls silent fails the whole batch: the others ran without the load
    the cell asks for. Every iteration gets an outcome, a failed one where none was reported.

    Parameters
    ----------
    shares : sequence of Share
        One per worker.
    patience_s : float
        Time a worker may be silent [s].
    sink : callable
        Called with the worker's index and each outcome, as it arrives.

    Returns
    -------
    str or None
        Why the batch failed. Its workers are then in an unknown state and must be closed.
    """
    for share in shares:
        share.prepare()
    _listen_until(shares, {_State.READY}, patience_s, sink)
    if _first_failure(shares) is None:
        for share in shares:
            share.go()
        _listen_until(shares, set(), patience_s, sink)
    failure = _first_failure(shares)
    if failure is None:
        return None
    for index, share in enumerate(shares):
        share.fail(f"another worker of the batch failed: {failure}")
        for outcome in share.missing():
            sink(index, outcome)
    return failure


def _listen_until(shares: Sequence[Share], states: set[_State], patience_s: float, sink: OutcomeSink) -> None:
    """Listen until every share is over or in one of the states, or one failed."""
    while True:
        waiting = [share for share in shares if not share.is_over and share.state not in states]
        if not waiting or any(share.state is _State.FAILED for share in shares):
            return
        silence_s = time.monotonic() - min(share.last_heard for share in waiting)
        select.select([share.worker for share in waiting], [], [], max(patience_s - silence_s, 0.0))
        for index, share in enumerate(shares):
            if share in waiting:
                for outcome in share.listen():
                    sink(index, outcome)
        for share in waiting:
            if not share.is_over and time.monotonic() - share.last_heard > patience_s:
                share.fail(f"the worker `{share.worker.site.name}` was silent for {patience_s:g} s")


def _first_failure(shares: Sequence[Share]) -> str | None:
    return next((share.failure for share in shares if share.failure is not None), None)
