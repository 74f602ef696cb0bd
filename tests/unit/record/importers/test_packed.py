"""Files that are packed, or of wide characters: read as what they hold, or refused as what they are."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pyarrow as pa
import pytest

from steelyard.errors import DataError
from steelyard.record.importers.foreign import Source, unpacked

TEXT = b"workload,value\n" + b"sort,1.5\n" * 200
PACKED = {
    "gzip": gzip.compress(TEXT),
    "bz2": bz2.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "zstd": bytes(pa.Codec("zstd").compress(TEXT, asbytes=True)),
}


def source(content: bytes) -> Source:
    return Source(Path("t.csv"), content, "a table")


@pytest.mark.parametrize("packing", PACKED)
def test_packed_files_are_unpacked_and_cut_ones_refused(packing: str) -> None:
    assert unpacked(source(PACKED[packing])).content == TEXT
    with pytest.raises(DataError, match=rf"damaged {packing}|{packing} that was cut off"):
        unpacked(source(PACKED[packing][:-12]))


@pytest.mark.parametrize("packing", PACKED)
def test_packed_files_one_behind_the_other_are_all_read(packing: str) -> None:
    assert unpacked(source(PACKED[packing] * 3)).content == TEXT * 3
    with pytest.raises(DataError, match=rf"damaged {packing}|{packing} that was cut off"):
        unpacked(source((PACKED[packing] * 2)[:-12]))


@pytest.mark.parametrize("form", ["utf-8-sig", "utf-16", "utf-32"])
def test_characters_of_any_width_are_read(form: str) -> None:
    assert unpacked(source(TEXT.decode().encode(form))).content == TEXT


@pytest.mark.parametrize("content", [TEXT + b"\0" * 9, TEXT.decode().encode("utf-16-le")])
def test_bytes_of_zero_are_named(content: bytes) -> None:
    with pytest.raises(DataError, match=r"line \d+: a byte of zero"):
        unpacked(source(content)).text()
