"""From recorded messages to a result folder of the communication study: plan, traces, tables, provenance."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from steelyard.errors import unwritable
from steelyard.model import Batch, Cell, Execution, Plan
from steelyard.record.importers.foreign import WORKLOAD, ForeignRun, Section
from steelyard.record.importers.foreign_result import STUDY as IMPORTED
from steelyard.record.importers.foreign_result import write_foreign, write_import_provenance
from steelyard.record.importers.imported_result import require_free
from steelyard.record.importers.interface import ImportSummary
from steelyard.record.outcome_rows import run_identity
from steelyard.record.published import write_published
from steelyard.record.seal import seal_tables
from steelyard.record.tables import ResultTables
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.studies.communication.importers.recording import NONE, TIMED
from steelyard.studies.communication.trace import (
    BLOCK,
    OPERATION,
    PROBE,
    Endpoint,
    Operation,
    Trace,
    write_trace,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.record.importers.foreign_result import ForeignResult, ReadFile
    from steelyard.studies.communication.importers.recording import Recording

    Whole = NDArray[np.int64]

STUDY: Final = "communication"
NO_LINK: Final = "none"
MARGIN_PERCENT: Final = 5.0
"""As in a measured study."""

CALLS_ALONE: Final = (
    "calls without a message: their times are described, and there is no cost model; import them together "
    "with the files of the messages for one"
)
HELD_OUT: Final = 1
BLOCK_MESSAGES: Final = 256
"""Messages that are resampled together: what disturbs one disturbs its neighbours."""

_FEWEST_BLOCKS: Final = 40
_MOST_BLOCKS: Final = 1000
_MOSTLY: Final = 0.9


@dataclass(slots=True)
class _Replication:
    """Recordings of one transport that were measured once; each operation is in one of them."""

    parts: list[Recording] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    @property
    def operations(self) -> set[int]:
        return {int(each) for part in self.parts for each in np.unique(part.op)}


def write_recordings(result: Path, files: Sequence[ReadFile], kind: ForeignResult) -> ImportSummary:
    """Write a result folder that the communication study analyses.

    Files are replications in the order given, but that files of other operations complete one: a program that
    keeps each operation in a file of its own was executed once. Calls without any message have no model:
    their times become an import like any other.

    Raises
    ------
    DataError
        If the folder holds something else, or cannot be written.
    """
    found: dict[str, list[_Replication]] = {}
    if not any(np.isin(part.op, list(TIMED)).any() for file in files for part in _recordings(file)):
        return write_foreign(result, [_calls(file) for file in files], replace(kind, study=IMPORTED))
    for file in files:
        for part in _recordings(file):
            if not part:
                continue
            replications = found.setdefault(part.transport, [])
            if not replications or {int(each) for each in np.unique(part.op)} & replications[-1].operations:
                replications.append(_Replication())
            replications[-1].parts.append(part)
            replications[-1].files.append(file.origin.file_name)
    plan = _plan(found, files, kind)
    require_free(result, plan)
    messages = 0
    try:
        result.mkdir(parents=True, exist_ok=True)
        plan.write(result / "plan.json")
        for batch in plan.batches:
            name = plan.cells[batch.cell].levels["transport"]
            timed = _timed(found[name])
            trace = _trace(found[name][batch.block], name, timed)
            messages += len(trace.endpoints[0].operations)
            # The folder that an executed batch of one attempt would leave.
            write_trace(result / TRACES_NAME / f"{batch.number:06d}.01", trace)
    except OSError as error:
        raise unwritable(result, error, "give another folder with --out") from error
    generation = hashlib.sha256(f"{plan.id} {plan.options['origin_sha256']}".encode()).hexdigest()
    with ResultTables(result, plan, generation) as tables:
        for batch in plan.batches:
            identity = run_identity(plan, batch, attempt=1, worker=0, iteration=1, host_id="")
            tables.add({**identity, "status": "completed", "exit_code": None, "flags": []}, [])
    numbers = {cell.levels["transport"]: cell.number for cell in plan.cells}
    published = [
        (numbers[each.levels["transport"]], file.block, each)
        for file in files
        for each in file.content.published
        if each.levels["transport"] in numbers
    ]
    write_published(result, plan, generation, published)
    notes = tuple(dict.fromkeys(note for file in files for note in file.content.notes))
    write_import_provenance(result, plan, files, notes)
    seal_tables(result)
    runs = len(plan.batches)
    form = files[0].origin.form
    return ImportSummary(result, plan.study, form, len(plan.cells), 0, runs, messages, notes)


def _recordings(file: ReadFile) -> list[Recording]:
    return cast("list[Recording]", file.content.recordings)


def _calls(file: ReadFile) -> ReadFile:
    """Give the times of calls as values, those of each kind as a program's."""
    runs = []
    for part in _recordings(file):
        lasted = part.first[:, 2] - part.first[:, 0]
        for kind in dict.fromkeys(part.op.tolist()):
            name = Operation(kind).name.lower()
            sections = [
                Section("time", "ns", float(value), number)
                for number, value in enumerate(lasted[part.op == kind].tolist(), start=1)
            ]
            runs.append(ForeignRun({WORKLOAD: name, "transport": part.transport}, sections))
    return replace(file, content=replace(file.content, runs=runs, notes=[*file.content.notes, CALLS_ALONE]))


def _plan(found: dict[str, list[_Replication]], files: Sequence[ReadFile], kind: ForeignResult) -> Plan:
    cells = tuple(
        Cell(number, {"transport": name, "link": NO_LINK}, Execution(isolation="", command=(name,)))
        for number, name in enumerate(found)
    )
    held = [(cell, block) for cell, parts in enumerate(found.values()) for block in range(len(parts))]
    digest = hashlib.sha256(" ".join(file.origin.sha256 for file in files).encode()).hexdigest()
    return Plan(
        study=STUDY,
        seed=1,
        factors={"transport": tuple(found), "link": (NO_LINK,)},
        cells=cells,
        batches=tuple(Batch(number, block, cell) for number, (cell, block) in enumerate(held)),
        blocks=max(map(len, found.values())),
        options={
            "mode": "import",
            "origin": kind.importer,
            "origin_sha256": digest,
            "held_out": HELD_OUT,
            "warm_up": 0,
            "margin_percent": MARGIN_PERCENT,
            **kind.stated,
        },
    ).freeze()


def _timed(replications: Sequence[_Replication]) -> Operation | None:
    """Choose the operation that the curve is about: round trips, else what was recorded most often."""
    ops = np.concatenate([part.op for each in replications for part in each.parts])
    counts = {kind: int(np.sum(ops == kind)) for kind in TIMED}
    if counts[Operation.PINGPONG]:
        return Operation.PINGPONG
    kind = max(counts, key=lambda each: counts[each])
    return kind if counts[kind] else None


def _trace(replication: _Replication, name: str, timed: Operation | None) -> Trace:
    parts = replication.parts
    op, size = (np.concatenate([getattr(part, column) for part in parts]) for column in ("op", "size"))
    first, second = (np.concatenate([getattr(part, end) for part in parts]) for end in ("first", "second"))
    probes = np.concatenate([_probes(part) for part in parts])
    # Stamps of a trace are positive; both clocks move together, so that nothing between them changes.
    taken = [each[each != NONE] for each in (first, second, probes)]
    shift = 1 - min(0, *(int(each.min()) for each in taken if each.size))
    records = [_records(op, size, stamps, shift) for stamps in (first, second)]
    records[1] = records[1][records[1]["end_ns"] > 0]
    blocks = _blocks(parts, size, first, shift)
    header: dict[str, Any] = {
        "transport": name,
        "operations": int(op.size),
        "is_complete": True,
        "host": "",
        "clock": "",
        "is_recording": True,
        "is_ordered": is_ordered(size),
        "files": replication.files,
        "is_one_clock": all(part.is_one_clock for part in parts if part.has_second),
    }
    if timed is not None:
        stated = [part.timed[timed] for part in parts if timed in part.timed]
        header |= {"timed": timed.name.lower(), "timed_as": stated[0] if stated else TIMED[timed]}
    repetitions = [part.repetitions for part in parts if part.repetitions is not None]
    if repetitions:
        header["repetitions"] = [min(low for low, _ in repetitions), max(high for _, high in repetitions)]
        header["error_share"] = parts[0].error_share
    kept = np.zeros(len(probes), dtype=PROBE)
    begins = np.maximum.accumulate(first[:, 0])
    kept["seq"] = np.searchsorted(begins, probes[:, 0])
    for column, stamp in zip(("send0", "time1", "recv0"), probes.T, strict=True):
        kept[column] = stamp + shift
    ends = (Endpoint(header, records[rank], blocks[rank]) for rank in range(2))
    return Trace((next(ends), next(ends)), kept)


def _probes(part: Recording) -> Whole:
    return np.empty((0, 3), dtype=np.int64) if part.probes is None else part.probes


def _records(op: Whole, size: Whole, stamps: Whole, shift: int) -> NDArray[np.void]:
    found = np.zeros(op.size, dtype=OPERATION)
    found["seq"], found["op"], found["size"] = np.arange(op.size), op, size
    for column, stamp in zip(("start_ns", "mid_ns", "end_ns"), stamps.T, strict=True):
        found[column] = np.where(stamp == NONE, 0, stamp + shift)
    return found


def _blocks(parts: Sequence[Recording], size: Whole, first: Whole, shift: int) -> list[NDArray[np.void]]:
    """Give the marks between blocks: as they were recorded, or between so many messages.

    Messages in the order of their sizes have neighbours of the same size: a block of them is small.
    """
    if len(parts) == 1 and parts[0].waiting is not None:
        rows = parts[0].waiting
        found = []
        for rank in range(2):
            marks = np.zeros(len(rows), dtype=BLOCK)
            marks["seq"], marks["canary_ns"] = rows[:, 0], np.nan
            marks["time_ns"], marks["run_delay_ns"] = rows[:, 1 + 2 * rank] + shift, rows[:, 2 + 2 * rank]
            found.append(marks)
        return found
    most = -(-size.size // _MOST_BLOCKS)
    few = max(size.size // _FEWEST_BLOCKS, 1)
    width = most if is_ordered(size) else max(most, min(BLOCK_MESSAGES, few))
    starts = np.arange(0, size.size, width)
    marks = np.zeros(starts.size, dtype=BLOCK)
    marks["seq"], marks["canary_ns"] = starts, np.nan
    marks["time_ns"] = first[starts, 0] + shift
    return [marks, np.zeros(0, dtype=BLOCK)]


def is_ordered(size: Whole) -> bool:
    """Tell whether messages were sent in the order of their sizes, up or down.

    Examples
    --------
    >>> is_ordered(np.array([1, 1, 2, 4, 8])), is_ordered(np.array([3, 1, 4, 1, 5]))
    (True, False)
    """
    steps = np.diff(size)
    steps = steps[steps != 0]
    return bool(steps.size) and bool(max(np.mean(steps > 0), np.mean(steps < 0)) > _MOSTLY)
