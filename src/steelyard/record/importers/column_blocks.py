"""Tables as blocks of columns of texts, from plain text or Parquet, as far as they are plain."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow.parquet as pq

_BLOCK_BYTES: Final = 1 << 22
_ROWS: Final = 1 << 16
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
        return self._taken(self._file.readline(_BLOCK_BYTES))

    def read(self, size: int) -> bytes:
        """Read on; nothing more from something strange on."""
        return b"" if self.is_strange else self._taken(self._file.read(size))

    def _taken(self, content: bytes) -> bytes:
        self._digest.update(content)
        self.size += len(content)
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
        columns = {role: batch[str(place)] for role, place in places.items()}
        if text.has_blanks:
            columns = {role: _trimmed(column) for role, column in columns.items()}
        yield columns


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
