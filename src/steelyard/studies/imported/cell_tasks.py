"""What is computed of some cells of an import, from the tables alone, wherever that is."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from steelyard.model.plan import read_plan
from steelyard.record.published import read_published
from steelyard.studies.imported.cells import cell_finding
from steelyard.studies.imported.comparisons import test_of
from steelyard.studies.imported.published import published_findings
from steelyard.studies.imported.samples import COMPARING, Samples, needed_bytes, samples_of_cells

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.model import Finding, Plan
    from steelyard.studies.imported.comparisons import Tested
    from steelyard.studies.imported.samples import Sample

Key = tuple[int, str, str]
"""Cell, metric and unit of a sample."""
_LARGE: Final = 20_000
"""Values of a sample, in the mean, from which on several are described at once."""
_THREADS: Final = 2
"""Each needs memory for copies of its values."""
_TOGETHER_BYTES: Final = 1 << 28
"""Cells that take less memory together are read together."""


@dataclass(slots=True)
class Source:
    """Reads samples, and keeps the last ones as long as it stays in its process.

    Parameters
    ----------
    result : Path
        Result folder.
    plan : Plan or None
        Its plan; ``None``: not read yet.
    is_whole : bool
        Whether all cells are read at once.
    """

    result: Path
    plan: Plan | None
    is_whole: bool
    _kept: dict[tuple[int, ...] | None, Samples] = field(default_factory=dict)

    def samples(self, cells: Sequence[int]) -> Samples:
        """Give the samples of cells, those of all cells where they are read at once."""
        wanted = None if self.is_whole else tuple(cells)
        if wanted not in self._kept:
            self._kept.clear()
            self._kept[wanted] = self._read(wanted)
        return self._kept[wanted]

    def with_failed(self, cells: Sequence[int]) -> list[Sample]:
        """Give them with the launches that failed."""
        return self._read(None if self.is_whole else cells, with_failed=True).found

    def parts(self, cells: Sequence[int]) -> list[Sequence[int]]:
        """Give the cells that are read together: one by one where they are large."""
        if self.is_whole or needed_bytes(self.result, cells) <= _TOGETHER_BYTES:
            return [cells]
        return [[cell] for cell in cells]

    def _read(self, cells: Sequence[int] | None, *, with_failed: bool = False) -> Samples:
        if self.plan is None:
            self.plan = read_plan(self.result / "plan.json")
        return samples_of_cells(self.result, self.plan, cells, with_failed=with_failed)

    def __getstate__(self) -> tuple[Path, bool]:
        return self.result, self.is_whole

    def __setstate__(self, state: tuple[Path, bool]) -> None:
        self.result, self.is_whole = state
        self.plan = None
        self._kept = {}


@dataclass(slots=True)
class Described:
    """What the values of some cells say.

    Parameters
    ----------
    samples : list of Sample
        The samples, where they are read cell by cell without their values.
    first_rows : dict
        Number of the first row of each metric.
    findings : list of Finding
        One for each sample.
    published, published_of_all : list of tuple
        Findings on published values, each with its place in the table of them; of the launches that
        completed, and of all.
    """

    samples: list[Sample] = field(default_factory=list)
    first_rows: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    published: list[tuple[int, Finding]] = field(default_factory=list)
    published_of_all: list[tuple[int, Finding]] = field(default_factory=list)

    def add(self, other: Described) -> None:
        """Add what is known of further cells."""
        self.samples += other.samples
        for metric, row in other.first_rows.items():
            self.first_rows[metric] = min(row, self.first_rows.get(metric, row))
        self.findings += other.findings
        self.published += other.published
        self.published_of_all += other.published_of_all

    def in_order(self) -> Described:
        """Give it by cell, then by metric in order of appearance in the table."""
        keys = [(each.cell, self.first_rows[each.metric], each.unit) for each in self.samples]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        return replace(
            self,
            samples=[self.samples[place] for place in order],
            findings=[self.findings[place] for place in order],
            published=sorted(self.published, key=itemgetter(0)),
            published_of_all=sorted(self.published_of_all, key=itemgetter(0)),
        )


@dataclass(frozen=True, slots=True)
class DescribeCells:
    """Describe cells, and lay what was published beside them.

    Parameters
    ----------
    source : Source
        Where their samples are read.
    cells : sequence of int
        Their numbers, ascending.
    seed : int
        Of the plan.
    margin : float
        Largest relative difference of levels of a series that does not matter.
    labels : sequence of str
        Names of the blocks.
    """

    source: Source
    cells: Sequence[int]
    seed: int
    margin: float
    labels: Sequence[str]

    @property
    def name(self) -> str:
        """The cells by number."""
        return _named(self.cells)

    def needed_bytes(self) -> int:
        """Estimate the memory that it takes."""
        return max(needed_bytes(self.source.result, part) for part in self.source.parts(self.cells))

    def compute(self) -> Described:
        """Describe each sample."""
        table = read_published(self.source.result)
        rows = [] if table is None else table.to_pylist()
        found = Described()
        for part in self.source.parts(self.cells):
            found.add(self._part(part, rows))
        return found

    def _part(self, cells: Sequence[int], rows: list[dict[str, Any]]) -> Described:
        read = self.source.samples(cells)
        describe = partial(cell_finding, seed=self.seed, margin=self.margin)
        values = sum(each.count for each in read.found)
        if values < _LARGE * len(read.found):
            findings = [describe(each) for each in read.found]
        else:
            # The kernels that large samples are described with work without the interpreter's lock.
            with ThreadPoolExecutor(min(_THREADS, len(os.sched_getaffinity(0)))) as threads:
                findings = list(threads.map(describe, read.found))
        own = set(cells)
        published = {place: row for place, row in enumerate(rows) if row["cell"] in own}
        of_completed = published_findings(published, read.found, self.labels)
        # A tool's own statistics are of all its launches.
        has_more = bool(published) and read.has_failed_runs
        of_all = (
            published_findings(published, self.source.with_failed(cells), self.labels)
            if has_more
            else of_completed
        )
        kept = [each if self.source.is_whole else each.without_values() for each in read.found]
        return Described(kept, read.first_rows, findings, of_completed, of_all)


@dataclass(frozen=True, slots=True)
class CompareCells:
    """Test pairs of samples.

    Parameters
    ----------
    source : Source
        Where they are read.
    pairs : sequence of (Key, Key)
        First and second of each pair.
    margin : float
        Largest relative difference that counts as none.
    """

    source: Source
    pairs: Sequence[tuple[Key, Key]]
    margin: float

    @property
    def name(self) -> str:
        """The cells by number."""
        return f"the comparisons of {_named(_cells_of(self.pairs))}"

    def needed_bytes(self) -> int:
        """Estimate the memory that it takes."""
        return max(needed_bytes(self.source.result, _cells_of(part), COMPARING) for part in self._parts())

    def compute(self) -> list[Tested]:
        """Give the test of each pair."""
        found = []
        for part in self._parts():
            samples = {key_of(each): each for each in self.source.samples(_cells_of(part)).found}
            found += [test_of(samples[first], samples[second], self.margin) for first, second in part]
        return found

    def _parts(self) -> list[Sequence[tuple[Key, Key]]]:
        """Give the pairs whose cells are read together."""
        is_large = len(self.source.parts(_cells_of(self.pairs))) > 1
        return [[pair] for pair in self.pairs] if is_large else [self.pairs]


def key_of(sample: Sample) -> Key:
    """Give what tells a sample from all others."""
    return sample.cell, sample.metric, sample.unit


def _cells_of(pairs: Sequence[tuple[Key, Key]]) -> list[int]:
    return sorted({cell for pair in pairs for cell, _, _ in pair})


def _named(cells: Sequence[int]) -> str:
    return f"cell {cells[0]}" if len(cells) == 1 else f"cells {cells[0]} to {cells[-1]}"
