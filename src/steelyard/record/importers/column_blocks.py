"""Files as blocks of columns of texts, from plain text, JSON lines or Parquet, as far as they are plain."""

from __future__ import annotations

import codecs
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steelyard import _native

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow.parquet as pq
    from numpy.typing import NDArray

_BLOCK_BYTES: Final = 1 << 22
_JSON_BYTES: Final = 1 << 24
_ROWS: Final = 1 << 16
ABSENT, TEXT, NUMBER, OBJECT = 0, 1, 2, 3
"""Kinds of members of JSON."""
_LONE_RETURN: Final = re.compile(rb"\r(?!\n|\Z)")
_RETURN: Final = frozenset(b"\r")
_BLANKS: Final = frozenset(b" \t")
_ORDINARY: Final = bytes(sign for sign in range(0x21, 0x7F) if sign != ord('"')) + b"\n"
"""Signs that every reader takes for the same: no quotes, letters beyond ASCII, or other ends of lines."""
_LEAST_PLAIN: Final = 1e-4
_LEAST_WITH_EXPONENT: Final = 1e10
"""Between both, Python and the Parquet library write a number with the same digits, none with an exponent."""


class PlainText:
    """A file of plain text that is read once, and known to be plain as far as it was read.

    Parameters
    ----------
    file : BinaryIO
        The file, at its beginning.
    """

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._is_cut = False
        self.size = 0
        self.is_strange = False
        self.has_blanks = False

    @property
    def sha256(self) -> str:
        """Hash of what was read."""
        return self._digest.hexdigest()

    def readline(self) -> bytes:
        """Read the first line."""
        line = self._file.readline(_BLOCK_BYTES)
        self._digest.update(line)
        self.size += len(line)
        return self._taken(line)

    def read(self, size: int) -> bytes:
        """Read on; nothing more from something strange on."""
        return b"" if self.is_strange else self._taken(self.read_any(size))

    def read_any(self, size: int) -> bytes:
        """Read on, whatever it is."""
        content = self._file.read(size)
        self._digest.update(content)
        self.size += len(content)
        return content

    def _taken(self, content: bytes) -> bytes:
        rest = set(content.translate(None, _ORDINARY))
        self.has_blanks |= bool(rest & _BLANKS)
        # A line that ends with a carriage return alone is one for some readers, and none for others.
        if self._is_cut and content[:1] != b"\n":
            self.is_strange = True
        self._is_cut = content.endswith(b"\r")
        if rest - _BLANKS - _RETURN or (rest & _RETURN and _LONE_RETURN.search(content)):
            self.is_strange = True
        return content


def text_blocks(
    text: PlainText, delimiter: str, width: int, places: Mapping[str, int]
) -> Iterator[dict[str, pa.Array]]:
    """Give the columns of a delimited text without its headings, a block at a time.

    Parameters
    ----------
    text : PlainText
        Behind its headings.
    delimiter : str
        One character.
    width : int
        Fields of a row.
    places : Mapping
        Position of each role.

    Raises
    ------
    pyarrow.ArrowException
        If a row has another number of fields.
    NotPlainError
        If there is something strange in it, from where on nothing was read.
    """
    from pyarrow import csv  # noqa: PLC0415 - start-up time

    # Texts that repeat are told apart while they are read: no text is made for each of their rows.
    kinds = {
        role: pa.string() if role == "value" else pa.dictionary(pa.int32(), pa.string()) for role in places
    }
    names = {str(place): kinds[role] for role, place in places.items()}
    reader = csv.open_csv(
        pa.PythonFile(text, mode="r"),
        csv.ReadOptions(
            use_threads=False,
            block_size=_BLOCK_BYTES,
            column_names=[str(place) for place in range(width)],
        ),
        csv.ParseOptions(delimiter=delimiter, quote_char=False),
        csv.ConvertOptions(
            column_types=names, include_columns=[*names], strings_can_be_null=False, null_values=[]
        ),
    )
    for batch in reader:
        if text.is_strange:
            break
        columns = {role: batch[str(place)] for role, place in places.items()}
        if text.has_blanks:
            columns = {role: _trimmed(column) for role, column in columns.items()}
        yield columns
    if text.is_strange:
        raise NotPlainError


def _trimmed(column: pa.Array) -> pa.Array:
    if isinstance(column, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(column.indices, pc.ascii_trim_whitespace(column.dictionary))
    return pc.ascii_trim_whitespace(column)


def parquet_blocks(file: pq.ParquetFile, places: Mapping[str, int]) -> Iterator[dict[str, pa.Array]]:
    """Give the columns of a Parquet file as the texts that its values are in Python, a block at a time.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
        Without nested columns.
    places : Mapping
        Position of each role.

    Raises
    ------
    pyarrow.ArrowException
        If a column has no text form, or it has nulls: they are no values.
    """
    names = file.schema_arrow.names
    wanted = {role: names[place] for role, place in places.items()}
    for batch in file.iter_batches(_ROWS, columns=list(wanted.values()), use_threads=False):
        yield {role: _as_text(batch[name]) for role, name in wanted.items()}


def _as_text(column: pa.Array) -> pa.Array:
    """Give values as Python writes them."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if column.null_count or not (is_text or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        message = f"a column of {kind} is left to the reader of rows"
        raise pa.ArrowInvalid(message)
    if not pa.types.is_float64(kind):
        # Python has no other floating-point numbers: what it writes of them is that of the double.
        column = column.cast(pa.float64()) if pa.types.is_floating(kind) else column
    texts = column.cast(pa.string())
    if not pa.types.is_floating(kind):
        return texts
    values = column.to_numpy()
    is_whole = pa.array(values == np.floor(values))
    texts = pc.if_else(is_whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    sizes = np.abs(values)
    (others,) = np.nonzero(~((sizes >= _LEAST_PLAIN) & (sizes < _LEAST_WITH_EXPONENT)) & (sizes != 0))
    if not others.size:
        return texts
    written = [repr(value) for value in column.take(pa.array(others)).to_pylist()]
    mask = np.zeros(len(column), dtype=np.bool_)
    mask[others] = True
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(written, pa.string()))


class NotPlainError(ValueError):
    """A file that is to be read row by row."""


@dataclass(frozen=True, slots=True)
class JsonColumn:
    """A member of each of some JSON lines.

    Parameters
    ----------
    kind : ndarray
        What it is: `ABSENT` (or null), `TEXT`, `NUMBER`, `OBJECT` or another.
    text : pyarrow.Array
        Texts, and numbers as they are written; empty for what is neither.
    """

    kind: NDArray[np.uint8]
    text: pa.Array

    def require(self, *kinds: int) -> pa.Array:
        """Give the texts, where the member is of no other kind.

        Raises
        ------
        NotPlainError
            If it is of another one somewhere.
        """
        if not np.isin(self.kind, kinds).all():
            raise NotPlainError
        return self.text


def json_blocks(text: PlainText, paths: Sequence[str]) -> Iterator[dict[str, JsonColumn]]:
    """Give members of JSON lines, a block of lines at a time.

    Parameters
    ----------
    text : PlainText
        At its beginning.
    paths : sequence of str
        Names from the top of a line, with dots between them.

    Raises
    ------
    NotPlainError
        If there is something else than objects in lines, or what readers of JSON take for one thing or
        another.
    """
    rest = text.read_any(_JSON_BYTES).removeprefix(codecs.BOM_UTF8)
    while rest:
        end = rest.rfind(b"\n") + 1
        coming = text.read_any(_JSON_BYTES)
        if not coming:
            end = len(rest)
        elif not end:
            raise NotPlainError
        yield _json_columns(rest[:end], paths)
        rest = rest[end:] + coming


def _json_columns(content: bytes, paths: Sequence[str]) -> dict[str, JsonColumn]:
    found = _native.json_columns(content, [path.split(".") for path in paths])
    if found is None:
        raise NotPlainError
    return {
        path: JsonColumn(
            kind, pa.StringArray.from_buffers(kind.size, pa.py_buffer(ends), pa.py_buffer(texts))
        )
        for path, (kind, ends, texts) in zip(paths, found, strict=True)
    }
