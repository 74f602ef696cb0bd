"""What a foreign file holds, in Steelyard's words: runs of cells, and what the tool published about them."""

from __future__ import annotations

import bz2
import codecs
import decimal
import gzip
import io
import lzma
import zlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NoReturn, overload

from steelyard.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sized
    from decimal import Decimal
    from pathlib import Path
    from typing import IO

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


WORKLOAD: Final = "workload"
"""The factor every import has: what was measured."""

NOT_APPLICABLE: Final = "none"
"""Level of a parameter that a workload does not have."""

MEASURE: Final = "measure"
WARM_UP: Final = "warmup"

DECIMAL_EXPONENTS: Final[dict[str, int]] = {"ns": 0, "us": 3, "ms": 6, "s": 9}
"""Power of ten that turns a unit of time into nanoseconds."""

LARGEST_EXPONENT: Final = 100
"""Numbers of more digits before or behind the point are damage: nothing measured is so large or small, and
squares and products of such numbers would leave the range of doubles."""

_PACKINGS: Final = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
"""Beginnings of packed files."""
_OPENERS: Final[dict[str, Callable[[IO[bytes]], io.BufferedIOBase]]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file),
    "bz2": bz2.BZ2File,
    "xz": lzma.LZMAFile,
}
_WIDE: Final = {
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
_LARGEST: Final = 1 << 30
"""Bytes of a packed file that are read at most."""
_EXACT: Final = decimal.Context(prec=800)


@dataclass(frozen=True, slots=True)
class Section:
    """One value of one timed section.

    Parameters
    ----------
    metric : str
        What was measured.
    unit : str
        ``ns`` for times; otherwise as the tool names it.
    value : float
        In `unit`.
    iteration : int
        Timed section inside the run, from 1.
    phase : str
        ``measure`` or ``warmup``.
    printed : str or None
        Digits as the file has them, in the file's own unit.
    """

    metric: str
    unit: str
    value: float
    iteration: int
    phase: str = MEASURE
    printed: str | None = None


@dataclass(frozen=True, slots=True)
class ForeignRun:
    """One process launch as a foreign file tells it.

    Parameters
    ----------
    levels : dict
        Level of each factor; has `WORKLOAD`.
    sections : sequence of Section
        Everything it measured, in order.
    worker_label : str
        Name of its worker in the file; empty where there is one.
    exit_code : int or None
        ``None`` where the file does not say.
    is_signalled : bool
        Whether a signal ended it.
    block : str
        Label of what it shares its disturbances with, inside the file; empty for the whole file.
    """

    levels: dict[str, str]
    sections: Sequence[Section]
    worker_label: str = ""
    exit_code: int | None = None
    is_signalled: bool = False
    block: str = ""


@dataclass(frozen=True, slots=True)
class ColumnarBatch:
    """Runs that were read by column and agree in all that tells cells and blocks apart.

    Parameters
    ----------
    levels : dict
        Level of each factor.
    block : str
        Label of the block, empty for the whole file.
    places : ndarray
        Which runs of the file they are, shape (n,).
    """

    levels: dict[str, str]
    block: str
    places: NDArray[np.int64]


class RunColumns(Sequence[ForeignRun]):
    """The runs of a file that was read by column: many are written at once, and none is made an object.

    Parameters
    ----------
    exit_codes : ndarray
        Exit code of each run, `NOT_STATED` where the file tells none.
    """

    exit_codes: NDArray[np.int64]

    @overload
    def __getitem__(self, place: int) -> ForeignRun: ...

    @overload
    def __getitem__(self, place: slice) -> list[ForeignRun]: ...

    def __getitem__(self, place: int | slice) -> ForeignRun | list[ForeignRun]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(place)
        return self._run(place)

    @abstractmethod
    def _run(self, place: int) -> ForeignRun:
        """Make one run an object."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of values of all runs."""

    @abstractmethod
    def cells(self) -> Iterable[dict[str, str]]:
        """Give levels of runs, in which each factor is named."""

    @abstractmethod
    def count(self, places: NDArray[np.int64]) -> int:
        """Give the number of values of some runs."""

    @abstractmethod
    def batches(self) -> Iterator[ColumnarBatch]:
        """Give the runs by cell and block, in order of appearance."""

    @abstractmethod
    def measurements(self, places: NDArray[np.int64], run_ids: pa.Array) -> Iterator[pa.Table]:
        """Give rows of the table of measurements, for some runs in the given order.

        Parameters
        ----------
        places : ndarray
            The runs, shape (n,).
        run_ids : pyarrow.Array
            Of texts, one for each of them.
        """


@dataclass(frozen=True, slots=True)
class Published:
    """A number that a tool computed itself; kept beside the raw values, never taken as one.

    Parameters
    ----------
    levels : dict
        Cell it is about.
    metric, statistic : str
        ``mean of time`` is metric ``time``, statistic ``mean``.
    unit : str
        As `Section.unit`.
    value : float
        In `unit`.
    printed : str
        As the file has it.
    """

    levels: dict[str, str]
    metric: str
    statistic: str
    unit: str
    value: float
    printed: str


@dataclass(slots=True)
class ForeignFile:
    """What was read from one file.

    Parameters
    ----------
    form : str
        Variant of the format.
    runs : list of ForeignRun
        In the order of the file.
    published : list of Published
        Numbers the tool computed.
    facts : dict
        Tool, version, machine, date, as far as the file tells.
    notes : list of str
        What was not taken, counted and named.
    recordings : list
        What a study reads in place of runs; the importer of its format writes them.
    table : RunColumns or None
        In place of `runs`, those of a file that was read by column.
    """

    form: str
    runs: list[ForeignRun] = field(default_factory=list)
    published: list[Published] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    recordings: list[Sized] = field(default_factory=list)
    table: RunColumns | None = None

    @property
    def holds_values(self) -> bool:
        """Whether there is a value at all."""
        return (
            (self.table is not None and self.table.size > 0)
            or any(run.sections for run in self.runs)
            or any(len(each) for each in self.recordings)
        )


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is being read, and how an error names it.

    Parameters
    ----------
    path : Path
        The file.
    content : bytes
        Its bytes.
    expected : str
        What the format looks like, for hints.
    """

    path: Path
    content: bytes
    expected: str

    def refuse(self, place: str, text: str) -> NoReturn:
        """Raise the error for something that is wrong at a place (line or JSON path)."""
        where = f", {place}" if place else ""
        message = in_line(f"`{self.path}`{where}: {text}")
        raise DataError(message, hint=f"expected {self.expected}", code="data.import")

    def text(self) -> str:
        """Give the content as text.

        Raises
        ------
        DataError
            Naming the line that is not UTF-8, or has a byte of zero.
        """
        if (place := self.content.find(0)) >= 0:
            line = self.content[:place].count(b"\n") + 1
            said = "a byte of zero, which no text has; a file that was cut off, or UTF-16 without its mark?"
            self.refuse(f"line {line}", said)
        try:
            return self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.content[: error.start].count(b"\n") + 1
            byte = f"byte {self.content[error.start]:#04x} is not UTF-8"
            self.refuse(f"line {line}", byte)


def unpacked(source: Source) -> Source:
    """Give a file without its packing, and its text as UTF-8 without a mark of byte order.

    Raises
    ------
    DataError
        If the packing is damaged.
    """
    content = source.content
    packing = next((name for begin, name in _PACKINGS.items() if content.startswith(begin)), "")
    if packing:
        content = _without_packing(source, packing)
    # What a PowerShell redirects into a file is UTF-16.
    for form, marks in _WIDE.items():
        if content.startswith(marks):
            try:
                content = content.decode(form).encode()
            except UnicodeError as error:
                source.refuse("", f"not {form.upper()}, which its first bytes announce: {error}")
    return replace(source, content=content.removeprefix(codecs.BOM_UTF8))


def _without_packing(source: Source, packing: str) -> bytes:
    """Give what was packed; packed files may stand one behind the other, as bgzip and pbzip2 write them."""
    try:
        if packing == "zstd":
            import pyarrow as pa  # noqa: PLC0415 - start-up time

            with pa.CompressedInputStream(pa.BufferReader(source.content), packing) as packed:
                content = bytes(packed.read(_LARGEST + 1))
        else:
            with _OPENERS[packing](io.BytesIO(source.content)) as file:
                content = file.read(_LARGEST + 1)
    except EOFError:
        source.refuse("", f"{packing} that was cut off")
    except (OSError, ValueError, lzma.LZMAError, zlib.error) as error:
        source.refuse("", f"damaged {packing}: {error}")
    if len(content) > _LARGEST:
        source.refuse("", f"{packing} of more than {_LARGEST} bytes")
    return content


def in_line(text: str) -> str:
    """Give foreign text in one line: a line of its own would look like another message."""
    return "\\n".join(text.splitlines())


def unreadable(path: Path, error: OSError, expected: str) -> DataError:
    """Give the error for a file that the system does not let us read, or that is none."""
    message = in_line(f"`{path}` cannot be read: {error.strerror}")
    return DataError(message, hint=f"expected {expected}", code="data.absent")


def is_plausible(number: Decimal) -> bool:
    """Tell whether a number is finite, and 0 or of a size that can have been measured.

    Examples
    --------
    >>> from decimal import Decimal
    >>> is_plausible(Decimal("1e-9")), is_plausible(Decimal("1e999")), is_plausible(Decimal("NaN"))
    (True, False, False)
    """
    return number.is_finite() and (number == 0 or abs(number.adjusted()) <= LARGEST_EXPONENT)


def to_nanoseconds(number: Decimal, unit: str) -> float:
    """Convert a time exactly; the one rounding is that to a double.

    Examples
    --------
    >>> from decimal import Decimal
    >>> to_nanoseconds(Decimal("0.1"), "s")
    100000000.0
    """
    return float(_EXACT.scaleb(number, DECIMAL_EXPONENTS[unit]))
