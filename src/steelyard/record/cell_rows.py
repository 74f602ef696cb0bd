"""The recorded values of one cell, read a part at a time; what the footers settle is not read at all."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.errors import DataError
from steelyard.record.importers.foreign import MEASURE
from steelyard.record.schema import MEASUREMENTS_SCHEMA, measurements_schema
from steelyard.record.table_file import ROWS_PER_GROUP, named_damage, repeated, require_columns
from steelyard.record.tables import measurement_files, require_one_generation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_BATCH: Final = 1 << 17
"""Rows that are read at once (1 MiB of values): they stay in the cache while they are summarised."""
_TYPES: Final = {
    **dict.fromkeys(("run_id", "phase", "metric", "unit"), (pa.string(), pa.large_string())),
    "value": (pa.float64(),),
}


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a row group.

    Parameters
    ----------
    path : Path
        Its file.
    group : int
        Its number in the file.
    chosen : bytes or None
        A bit for each row, set where it counts; ``None`` where every row does.
    """

    path: Path
    group: int
    chosen: NDArray[np.uint8] | None = None

    def narrowed(self, mask: NDArray[np.bool_]) -> _Part | None:
        """Give the rows of the mask, which has a place for each row of the group; ``None`` for none."""
        both = mask if self.chosen is None else mask & self.mask(len(mask))
        if both.all():
            return self
        return replace(self, chosen=np.packbits(both)) if both.any() else None

    def mask(self, rows: int) -> NDArray[np.bool_]:
        """Give whether each of the rows counts."""
        if self.chosen is None:
            return np.ones(rows, dtype=np.bool_)
        return np.unpackbits(self.chosen, count=rows).view(np.bool_)


class CellRows:
    """The measured values of some runs of a result.

    Parameters
    ----------
    result : Path
        Result folder.
    runs : sequence of str
        Their `run_id`.

    Raises
    ------
    DataError
        If the measurements are damaged.
    """

    def __init__(self, result: Path, runs: Sequence[str]) -> None:
        self._files: dict[Path, pq.ParquetFile] = {}
        self._units: dict[str, str] = {}
        parts: list[_Part] = []
        known = sorted(runs)
        for path in measurement_files(result):
            with named_damage(path, MEASUREMENTS_SCHEMA):
                file = _opened(path)
                self._files[path] = file
                own = (_own(file, _Part(path, group), known) for group in range(file.num_row_groups))
                parts += [part for part in own if part is not None]
        self._parts = parts
        self._by_metric: dict[str, list[_Part]] = {}
        for part in parts:
            with named_damage(part.path, MEASUREMENTS_SCHEMA):
                self._sort_in(part)

    @property
    def metrics(self) -> dict[str, str]:
        """The unit of each metric, in order of appearance."""
        return self._units

    def values(self, metric: str) -> Iterator[NDArray[np.float64]]:
        """Give the finite values of a metric in the order in which they were recorded, in batches."""
        for part in self._by_metric.get(metric, ()):
            with named_damage(part.path, MEASUREMENTS_SCHEMA):
                yield from self._values_of(part)

    def rows(self, metric: str = "", columns: Sequence[str] = ()) -> Iterator[pa.Table]:
        """Give rows of a metric, or of all, in parts of at most a row group."""
        for part in self._by_metric.get(metric, ()) if metric else self._parts:
            with named_damage(part.path, MEASUREMENTS_SCHEMA):
                table = self._files[part.path].read_row_group(
                    part.group, columns=list(columns), use_threads=False
                )
                yield table if part.chosen is None else table.filter(pa.array(part.mask(len(table))))

    def _values_of(self, part: _Part) -> Iterator[NDArray[np.float64]]:
        file = self._files[part.path]
        mask = None if part.chosen is None else part.mask(file.metadata.row_group(part.group).num_rows)
        end = 0
        for batch in file.iter_batches(_BATCH, row_groups=[part.group], columns=["value"], use_threads=False):
            begin, end = end, end + len(batch)
            found = batch.column(0).to_numpy(zero_copy_only=False)
            is_kept = np.isfinite(found)
            if mask is not None:
                is_kept &= mask[begin:end]
            yield found if is_kept.all() else found[is_kept]

    def _sort_in(self, part: _Part) -> None:
        """Note which metrics a part has, and where."""
        file = self._files[part.path]
        metric, unit = (_only(file, part.group, name) for name in ("metric", "unit"))
        if metric is not None and unit is not None:
            self._units.setdefault(metric, unit)
            self._by_metric.setdefault(metric, []).append(part)
            return
        table = file.read_row_group(part.group, columns=["metric", "unit"], use_threads=False)
        metrics = table["metric"].combine_chunks().dictionary_encode()
        codes = metrics.indices.to_numpy()
        own = part.mask(len(codes))
        for code, name in enumerate(metrics.dictionary.to_pylist()):
            of_metric = part.narrowed(codes == code)
            if of_metric is not None:
                first = int(np.flatnonzero((codes == code) & own)[0])
                self._units.setdefault(name, table["unit"][first].as_py())
                self._by_metric.setdefault(name, []).append(of_metric)


class RunRows:
    """All rows of some runs, warm-ups included, with some rows of their neighbours.

    Parameters
    ----------
    result : Path
        Result folder.
    runs : sequence of str
        Their `run_id`.

    Raises
    ------
    DataError
        If the measurements are damaged, or were not written together with the runs.
    """

    def __init__(self, result: Path, runs: Sequence[str]) -> None:
        paths, known = measurement_files(result), sorted(runs)
        self._groups: list[tuple[Path, pq.ParquetFile, int, int]] = []
        self.rows = 0
        metadata = []
        begin = 0
        for path in paths:
            with named_damage(path, MEASUREMENTS_SCHEMA):
                file = _opened(path)
                metadata.append(file.schema_arrow.metadata or {})
                for group in range(file.num_row_groups):
                    size = file.metadata.row_group(group).num_rows
                    if _may_hold(known, _bounds(file, group, "run_id")):
                        self._groups.append((path, file, group, begin))
                        self.rows += size
                    begin += size
        require_one_generation(result, paths, metadata)

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Give the rows a part at a time, in their order, with the number of the first of each part.

        Texts that the footer says are the same in a whole row group are not read; they come as a dictionary.

        Raises
        ------
        DataError
            If a file is damaged or lacks a column.
        """
        expected = measurements_schema({})
        wanted = pa.schema([expected.field(name) for name in columns])
        for path, file, group, begin in self._groups:
            with named_damage(path, MEASUREMENTS_SCHEMA):
                require_columns(path, file.schema_arrow.empty_table(), wanted)
                texts = [field.name for field in wanted if pa.types.is_string(field.type)]
                same = {name: text for name in texts if (text := _only(file, group, name)) is not None}
                read = [name for name in columns if name not in same]
                for batch in file.iter_batches(
                    ROWS_PER_GROUP, row_groups=[group], columns=read, use_threads=False
                ):
                    batch.validate(full=True)
                    found = {name: repeated(text, len(batch)) for name, text in same.items()}
                    found |= {name: batch[name] for name in read}
                    yield begin, pa.record_batch([found[name] for name in columns], list(columns))
                    begin += len(batch)  # noqa: PLW2901 - of the next part


def _may_hold(runs: Sequence[str], bounds: tuple[str, str] | None) -> bool:
    """Whether a row group with these least and greatest ids may hold rows of the runs (sorted)."""
    return bounds is None or bisect_right(runs, bounds[1]) > bisect_left(runs, bounds[0])


def _own(file: pq.ParquetFile, part: _Part, runs: Sequence[str]) -> _Part | None:
    """Give the measured rows of the runs (sorted) in a row group, or ``None``."""
    wanted = {"run_id": runs, "phase": [MEASURE]}
    asked = []
    for name, texts in wanted.items():
        bounds = _bounds(file, part.group, name)
        if bounds is None:
            asked.append(name)
            continue
        if not _may_hold(texts, bounds):
            return None
        if bounds[0] != bounds[1]:
            asked.append(name)
    if not asked:
        return part
    table = file.read_row_group(part.group, columns=asked, use_threads=False)
    mask = np.ones(len(table), dtype=np.bool_)
    for name in asked:
        # Texts repeat: those that differ are few, and looked up one by one.
        texts = table[name].combine_chunks().dictionary_encode()
        known = wanted[name]
        is_known = [
            (at := bisect_left(known, text)) < len(known) and known[at] == text
            for text in texts.dictionary.to_pylist()
        ]
        mask &= np.array(is_known, dtype=np.bool_)[texts.indices.to_numpy()]
    return part.narrowed(mask)


def _bounds(file: pq.ParquetFile, group: int, name: str) -> tuple[str, str] | None:
    """Give the least and the greatest text of a column in a row group, where the footer has them."""
    place = file.schema_arrow.names.index(name)
    found = file.metadata.row_group(group).column(place).statistics
    if found is None or not found.has_min_max or found.null_count:
        return None
    return str(found.min), str(found.max)


def _only(file: pq.ParquetFile, group: int, name: str) -> str | None:
    """Give the text that all rows of a row group have in a column."""
    bounds = _bounds(file, group, name)
    return bounds[0] if bounds is not None and bounds[0] == bounds[1] else None


def _opened(path: Path) -> pq.ParquetFile:
    # Read as needed: neither mapped, which ends the process when the file shrinks, nor whole.
    file = pq.ParquetFile(path, memory_map=False, pre_buffer=False, page_checksum_verification=True)
    schema = file.schema_arrow
    wrong = [f"column `{field.name}` is nested" for field in schema if pa.types.is_nested(field.type)]
    wrong += [
        f"column `{name}` is absent or not {types[0]}"
        for name, types in _TYPES.items()
        if schema.names.count(name) != 1 or schema.field(name).type not in types
    ]
    if wrong:
        message = f"`{path}` violates its schema: {'; '.join(wrong)}"
        raise DataError(message, hint="restore the file from a copy", code="data.schema")
    return file
