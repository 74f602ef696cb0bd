"""Every run as a few numbers, read one after the other: a result of any size needs the memory of one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.analyse.intervals.value_counts import merge_counts
from steelyard.errors import DataError
from steelyard.studies.replication.values.call_values import call_parts
from steelyard.studies.replication.values.micro_values import micro_parts
from steelyard.studies.replication.values.request_values import request_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from steelyard.analyse.intervals.value_counts import ValueCounts
    from steelyard.studies.replication.recorded import RecordedRun
    from steelyard.studies.replication.run_parts import Part

Key = tuple[str, str, str]
"""Experiment, configuration, setting."""


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """A run with its parts by name; the only part of a run without operations has the empty name."""

    recorded: RecordedRun
    parts: Mapping[str, Part]

    @property
    def key(self) -> Key:
        """Levels of its cell."""
        return self.recorded.experiment, self.recorded.configuration, self.recorded.setting


@dataclass(frozen=True, slots=True, eq=False)
class CellRuns:
    """The runs of one cell, in order of their repetitions."""

    key: Key
    runs: tuple[Summary, ...]

    @property
    def part_names(self) -> tuple[str, ...]:
        """Names of the parts that any run has, in order."""
        return tuple(dict.fromkeys(name for run in self.runs for name in run.parts))

    def parts(self, name: str) -> list[Part]:
        """Give a part of each run that has it."""
        return [run.parts[name] for run in self.runs if name in run.parts]

    def values(self, part: str, metric: str) -> list[float]:
        """Give a number of each run that has it."""
        return [each.values[metric] for each in self.parts(part) if metric in each.values]

    def by_block(self, part: str, metric: str) -> dict[int, float]:
        """Give a number of each run that has it, by the block of the run."""
        return {
            run.recorded.block: run.parts[part].values[metric]
            for run in self.runs
            if part in run.parts and metric in run.parts[part].values
        }

    def pooled(self, part: str) -> ValueCounts:
        """Give the single values of all runs together."""
        return merge_counts(each.pooled for each in self.parts(part))

    @property
    def has_single_values(self) -> bool:
        """Whether any run has values of single iterations, calls or requests."""
        return any(part.pooled.size for run in self.runs for part in run.parts.values())

    @property
    def software(self) -> dict[str, str]:
        """Versions of the programs that its runs used, by name."""
        found: dict[str, dict[str, None]] = {}
        for run in self.runs:
            said = run.recorded.header.get("software")
            for name, version in said.items() if isinstance(said, dict) else ():
                found.setdefault(str(name), {})[str(version)] = None
        return {name: " and ".join(versions) for name, versions in sorted(found.items())}

    @property
    def places(self) -> str:
        """Folders of the runs relative to the result."""
        return " ".join(run.recorded.place for run in self.runs)


def summarise(runs: Iterable[RecordedRun]) -> tuple[list[Summary], list[tuple[RecordedRun, str]]]:
    """Reduce every run that counts to its numbers, one after the other.

    Returns
    -------
    tuple
        The summaries, and the runs whose files cannot be used with the reason.
    """
    found: list[Summary] = []
    refused: list[tuple[RecordedRun, str]] = []
    for each in runs:
        if not each.is_usable:
            continue
        try:
            found.append(Summary(each, _READERS[each.experiment](each)))
        except DataError as error:
            refused.append((each, error.message))
    return found, refused


def cells_of(summaries: Sequence[Summary]) -> dict[Key, CellRuns]:
    """Give the runs by cell, without the twins of the A/A control, in order of the plan."""
    grouped: dict[Key, list[Summary]] = {}
    for each in summaries:
        if not each.recorded.is_twin:
            grouped.setdefault(each.key, []).append(each)
    return {key: CellRuns(key, tuple(runs)) for key, runs in grouped.items()}


_READERS: Final = {
    "e1": micro_parts,
    "e2": call_parts,
    "causes": call_parts,
    "e3": request_parts,
    "e4": request_parts,
}
"""What reads the numbers of a run, by experiment."""
