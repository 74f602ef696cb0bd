"""Two numeric columns of a foreign file: CSV with any delimiter or no header, SkaMPI output, Parquet."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.errors import DataError, UsageError
from steelyard.model.plain_file import read_plain_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

_DELIMITERS: Final = (",", ";", "\t", "|")
_SKAMPI: Final = "count="
_SHOWN: Final = 12


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Two columns of one file.

    Parameters
    ----------
    x, y : ndarray
        Shape (n,), finite, in the order of the file.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]


def read_columns(path: Path, x: str, y: str, *, where: dict[str, str] | None = None) -> Columns:
    """Read two numeric columns.

    A column is named as in the header, or by its number from 1 on. Text files may be separated by
    comma, semicolon, tab, bar or blanks; `#` begins a comment line; the words ``count=`` of SkaMPI
    output are skipped, and its lines of results alone are read. A file whose first line has numbers
    in both columns has no header.

    Parameters
    ----------
    path : Path
        The file; ``.parquet`` is read as Parquet, all else as text.
    x, y : str
        Names or numbers of the columns.
    where : dict or None
        Only rows in which these columns have these texts.

    Returns
    -------
    Columns

    Raises
    ------
    UsageError
        If a column does not exist; the columns there are named.
    DataError
        If the file is missing, empty, or a value is no finite number; with the line.
    """
    try:
        content = read_plain_file(path, may_be_pipe=True)
    except OSError as error:
        message = f"`{path}` cannot be read: {error.strerror}"
        raise DataError(message, hint="give a CSV or Parquet file", code="data.missing") from error
    read = _read_parquet if path.suffix == ".parquet" else _read_text
    return read(path, content, (x, y), where or {})


def _read_text(path: Path, content: bytes, names: tuple[str, str], where: dict[str, str]) -> Columns:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"`{path}` is not a text file: byte {error.start} is not UTF-8"
        raise DataError(message, hint="give a CSV or Parquet file", code="data.format") from error
    rows = _rows(text)
    first = next(rows, None)
    if first is None:
        message = f"`{path}` has no rows"
        raise DataError(message, hint="give a file with data", code="data.empty")
    header = None if _is_data(first[1], names) else first[1]
    wanted = [_position(path, name, header, len(first[1])) for name in (*names, *where)]
    values: tuple[list[float], list[float]] = ([], [])
    for line, cells in [first] if header is None else []:
        _take(path, line, cells, wanted, names, list(where.values()), values)
    for line, cells in rows:
        _take(path, line, cells, wanted, names, list(where.values()), values, len(header or []))
    return _checked(path, np.array(values[0]), np.array(values[1]))


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Give line numbers from 1 on and cells."""
    is_skampi = any(line.lstrip().startswith(_SKAMPI) for line in text.splitlines())
    delimiter: str | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if is_skampi:
            if line.startswith(_SKAMPI):
                yield number, line.removeprefix(_SKAMPI).split()
            continue
        if delimiter is None:
            counts = {mark: line.count(mark) for mark in _DELIMITERS}
            best = max(counts, key=lambda mark: counts[mark])
            delimiter = best if counts[best] else " "
        if delimiter == " ":
            yield number, line.split()
        else:
            cells = next(csv.reader(io.StringIO(line), delimiter=delimiter, skipinitialspace=True))
            yield number, [cell.strip() for cell in cells]


def _is_data(cells: list[str], names: tuple[str, str]) -> bool:
    """Whether a first line is no header: both columns are asked for by number, and hold numbers."""
    try:
        places = [int(name) - 1 for name in names]
        numbers = [float(cells[place]) for place in places]
    except (ValueError, IndexError):
        # Names were given, or the line has words where numbers should be.
        return all(_is_number(cell) for cell in cells)
    return all(math.isfinite(number) for number in numbers)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _position(path: Path, name: str, header: list[str] | None, width: int) -> int:
    if header is not None and name in header:
        if header.count(name) > 1:
            numbers = [str(place) for place, each in enumerate(header, start=1) if each == name]
            message = (
                f"cannot choose a column `{name}` of `{path}`: columns {', '.join(numbers)} have this name"
            )
            raise UsageError(message, hint="rename them, or give the number of the column")
        return header.index(name)
    if name.isascii() and name.isdecimal() and 1 <= int(name) <= width:
        return int(name) - 1
    shown = ", ".join(f"`{cell[:40]}`" for cell in (header or [])[:_SHOWN])
    known = f"columns: {shown}" if header is not None else f"it has no header; columns: 1 to {width}"
    message = f"`{path}` has no column `{name}`; {known}"
    raise UsageError(message, hint="name the columns with --x and --y, or give their numbers from 1")


def _take(  # noqa: PLR0913, PLR0917 - one row and what is asked of it
    path: Path,
    line: int,
    cells: list[str],
    wanted: list[int],
    names: tuple[str, str],
    texts: list[str],
    out: tuple[list[float], list[float]],
    width: int = 0,
) -> None:
    if width and any(cells[width:]):
        message = f"`{path}` line {line} has {len(cells)} columns, the header {width}"
        raise DataError(message, hint="check for decimal commas between separating commas", code="data.value")
    if len(cells) <= max(wanted):
        message = f"`{path}` line {line} has {len(cells)} columns, {max(wanted) + 1} needed"
        hint = "check whether the file is cut off, or its delimiters differ"
        raise DataError(message, hint=hint, code="data.value")
    if any(cells[place] != text for place, text in zip(wanted[2:], texts, strict=True)):
        return
    for place, name, values in zip(wanted[:2], names, out, strict=True):
        try:
            number = math.nan if "_" in cells[place] else float(cells[place])
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            message = f"`{path}` line {line}: `{name}` is `{cells[place]}`, which is not a finite number"
            raise DataError(message, hint="repair or remove the line", code="data.value")
        values.append(number)


def _read_parquet(path: Path, content: bytes, names: tuple[str, str], where: dict[str, str]) -> Columns:
    import pyarrow as pa  # noqa: PLC0415 - only for Parquet files
    import pyarrow.compute as pc  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        header = pq.read_schema(pa.BufferReader(content)).names
        positions = [_position(path, name, header, len(header)) for name in (*names, *where)]
        table = pq.read_table(pa.BufferReader(content), columns=[header[place] for place in positions])
    except (pa.ArrowInvalid, OSError) as error:
        message = f"cannot read `{path}` as a Parquet file: {error}"
        raise DataError(message, hint="give a CSV or Parquet file", code="data.format") from error
    for place, text in zip(positions[2:], where.values(), strict=True):
        table = table.filter(pc.equal(pc.cast(table[header[place]], pa.string()), text))
    columns = []
    for place, name in zip(positions[:2], names, strict=True):
        kind = table.schema.field(header[place]).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            message = f"`{path}`: column `{name}` contains {kind}, not numbers"
            raise DataError(message, hint="name a numeric column", code="data.value")
        values = np.asarray(table[header[place]].to_numpy(), dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            message = f"`{path}` row {bad[0] + 1}: `{name}` is not a finite number"
            raise DataError(message, hint="repair or remove the row", code="data.value")
        columns.append(values)
    return _checked(path, columns[0], columns[1])


def _checked(path: Path, x: NDArray[np.float64], y: NDArray[np.float64]) -> Columns:
    if x.size == 0:
        message = f"`{path}` has no rows"
        raise DataError(
            message, hint="give a file with data, and a --where that matches some row", code="data.empty"
        )
    return Columns(x, y)
