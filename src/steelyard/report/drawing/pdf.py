"""PDF files whose bytes follow from what they show; their maker leaves the order of objects to chance."""

from __future__ import annotations

import re
from typing import Final

_REFERENCE: Final = re.compile(rb"(?<![0-9.])([1-9][0-9]*) 0 R\b")
_TABLE: Final = re.compile(rb"xref\r?\n0 ([0-9]+)\r?\n((?:[0-9]{10} [0-9]{5} [nf]\s{1,2})+)")
_ENTRIES: Final = re.compile(rb"(?<=<<\n)(?: +/[A-Za-z]+[0-9]+ [0-9]+ 0 R\n){2,}")
"""Resources of a page, by name."""


def in_canonical_order(pdf: bytes) -> bytes:
    """Give a PDF whose objects have the order in which its catalogue reaches them.

    Parameters
    ----------
    pdf : bytes
        As the library `svg2pdf` writes it: one cross-reference table, every object in generation 0.

    Returns
    -------
    bytes
        The same document; two that differ only in the order of objects and resources become equal.

    References
    ----------
    ISO 32000-1:2008, 7.3.10 (indirect objects), 7.5.4 (cross-reference table).
    """
    table = _TABLE.search(pdf)
    if table is None:
        message = "the PDF has no cross-reference table"
        raise ValueError(message)
    objects = _objects(pdf, table)
    trailer = pdf[table.end() : pdf.index(b"startxref", table.end())]
    order = _reached(objects, trailer)
    numbers = {old: new for new, old in enumerate(order, 1)}

    def renumber(text: bytes) -> bytes:
        return _REFERENCE.sub(lambda match: b"%d 0 R" % numbers[int(match[1])], text)

    written, offsets = pdf[: min(_offsets(table).values())], []
    for old in order:
        head, stream = objects[old]
        offsets.append(len(written))
        written += b"%d 0 obj" % numbers[old] + renumber(head) + stream
    rows = b"".join(b"%010d 00000 n\r\n" % offset for offset in offsets)
    size = len(offsets) + 1
    trailer = re.sub(rb"/Size [0-9]+", b"/Size %d" % size, renumber(trailer))
    begin = len(written)
    return (
        written
        + b"xref\n0 %d\n0000000000 65535 f\r\n" % size
        + rows
        + trailer
        + b"startxref\n%d\n%%%%EOF\n" % begin
    )


def _offsets(table: re.Match[bytes]) -> dict[int, int]:
    rows = table[2].split()
    return {at // 3: int(rows[at]) for at in range(0, len(rows), 3) if rows[at + 2] == b"n"}


def _objects(pdf: bytes, table: re.Match[bytes]) -> dict[int, tuple[bytes, bytes]]:
    """Give each object as what stands before its stream, with sorted resources, and its stream."""
    places = sorted((offset, number) for number, offset in _offsets(table).items())
    ends = [offset for offset, _ in places[1:]] + [table.start()]
    found = {}
    for (begin, number), end in zip(places, ends, strict=True):
        text = pdf[begin:end].removeprefix(b"%d 0 obj" % number)
        head, mark, stream = text.partition(b"stream\n") if b"stream\n" in text else (text, b"", b"")
        ordered = _ENTRIES.sub(lambda match: b"".join(sorted(match[0].splitlines(keepends=True))), head)
        found[number] = ordered, mark + stream
    return found


def _reached(objects: dict[int, tuple[bytes, bytes]], trailer: bytes) -> list[int]:
    """Give the numbers of objects in the order in which references from the trailer reach them."""
    order: dict[int, None] = {}
    waiting = [int(number) for number in reversed(_REFERENCE.findall(trailer))]
    while waiting:
        number = waiting.pop()
        if number not in order:
            order[number] = None
            waiting += [int(each) for each in reversed(_REFERENCE.findall(objects[number][0]))]
    return list(order)
