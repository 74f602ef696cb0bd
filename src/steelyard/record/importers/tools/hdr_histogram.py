"""HdrHistogram: percentile distributions as text, and the log of compressed histograms (format V2).

A distribution is a run. A log is a run for each tag, its intervals are iterations. The unit is what the
recorder took; neither file states it, so it may be given.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
import zlib
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.tools.summary import (
    AS_RECORDED,
    Bin,
    Summary,
    count_at,
    levels,
    number_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "a percentile distribution of HdrHistogram (`Value Percentile TotalCount 1/(1-Percentile)`), or its log "
    "(`[Tag=NAME,]start,length,max,histogram` with compressed histograms of format V2)"
)
METRIC: Final = "value"
HEADING: Final = re.compile(
    r'\s*"?Value"?[\s,]+"?Percentile"?[\s,]+"?TotalCount"?[\s,]+"?1/\(1-Percentile\)"?\s*'
)
_FOOTER: Final = re.compile(r"#\[(\w+)\s*=\s*([\d.]+), *(\w[\w ]*?)\s*=\s*([\d.]+)\]", re.ASCII)
_INTERVAL: Final = re.compile(
    r"(?:Tag=(?P<tag>[^,]*),)?(?P<start>\d[\d.]*),(?P<length>[\d.]+),(?P<max>[\d.]+),(?P<code>HIST[\w+/=]*)",
    re.ASCII,
)
_START: Final = re.compile(r"#\[(?:StartTime|BaseTime): ([\d.]+)", re.ASCII)
_VERSION: Final = re.compile(r"#\[Histogram log format version ([\d.]+)\]")
_COMPRESSED, _PLAIN, _WORD_SIZE = 0x1C849304, 0x1C849303, 0xF0
_HEADER: Final = struct.Struct(">iiiiqq8s")
_RATIO_OF_ONE: Final = struct.pack(">d", 1.0)
_JAVASCRIPT: Final = struct.pack(">q", 1)
"""SOURCE: hdr-histogram-js writes a whole number in place of a double, and a shift that it does not make."""
_LARGEST: Final = 1 << 26
_MOST_DIGITS: Final = 5
_ROW: Final = 4


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    unit = options.unit or AS_RECORDED
    lines = list(enumerate(source.text().splitlines(), start=1))
    first = next((line for _, line in lines if line.strip() and not line.startswith("#")), "")
    if HEADING.fullmatch(first):
        found = ForeignFile("percentiles", facts={"tool": "HdrHistogram"})
        run = Summary(found, levels("hdr-histogram"))
        add_distribution(source, lines, run, METRIC, unit)
        run.end()
        return found
    return _log(source, lines, unit)


def add_distribution(
    source: Source, lines: Iterable[tuple[int, str]], run: Summary, metric: str, unit: str
) -> None:
    """Add a percentile distribution to a run; each value is the largest that counts as equal to one seen.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    bins: list[Bin] = []
    is_inside, passed, before = False, 0, Decimal(0)
    for number, line in lines:
        if HEADING.fullmatch(line):
            is_inside = True
        elif is_inside and (footer := _FOOTER.match(line)) is not None:
            for name, value in ((footer[1], footer[2]), (footer[3], footer[4])):
                statistic = {"Mean": "mean", "StdDeviation": "stddev", "Max": "max"}.get(name)
                if statistic is not None:
                    run.statistic(metric, statistic, number_at(source, number, value), unit)
                elif name.replace(" ", "").lower() == "totalcount":
                    run.value("recorded", number_at(source, number, value), "count")
            is_inside = footer[1] != "Buckets"
        elif is_inside and line.strip():
            fields = re.split(r"[\s,]+", line.strip())
            # The last line has no fourth field, or `Infinity`, in some implementations.
            if len(fields) not in (_ROW - 1, _ROW):
                source.refuse(f"line {number}", f"{len(fields)} fields; expected {_ROW}")
            value, count = number_at(source, number, fields[0]), count_at(source, number, fields[2])
            if value < before or count < passed:
                source.refuse(f"line {number}", "value or count is smaller than in the line before")
            bins.append(Bin(before if bins else value, value, count - passed))
            before, passed = value, count
    run.histogram(metric, bins, unit)


def _log(source: Source, lines: Sequence[tuple[int, str]], unit: str) -> ForeignFile:
    found = ForeignFile("log", facts={"tool": "HdrHistogram"})
    runs: dict[str, tuple[Summary, Counter[tuple[int, int]]]] = {}
    intervals: Counter[str] = Counter()
    for number, line in lines:
        if not line.strip() or line.startswith(("#", '"StartTimestamp"')):
            for name, pattern in (("started_s", _START), ("version", _VERSION)):
                if (matched := pattern.match(line)) is not None:
                    found.facts.setdefault(name, matched[1])
            continue
        interval = _INTERVAL.fullmatch(line.strip())
        if interval is None:
            source.refuse(f"line {number}", f"`{line[:40]}` is not an interval of a log of HdrHistogram")
        tag = interval["tag"] or ""
        run, total = runs.setdefault(tag, (Summary(found, levels("hdr-histogram", tag=tag)), Counter()))
        intervals[tag] += 1
        counts = dict(_counts(source, number, interval["code"]))
        total.update(counts)
        run.value("recorded", Decimal(sum(counts.values())), "count", intervals[tag])
        if counts:
            run.value(f"{METRIC}_max_of_interval", Decimal(max(counts)[1]), unit, intervals[tag])
    for run, total in runs.values():
        run.histogram(
            METRIC, (Bin(Decimal(low), Decimal(high), total[low, high]) for low, high in sorted(total)), unit
        )
        run.end()
    return found


def _counts(source: Source, line: int, code: str) -> Iterator[tuple[tuple[int, int], int]]:
    """Give how many values lie in each range [lowest, highest] of a compressed histogram."""
    try:
        packed = base64.b64decode(code, validate=True)
        cookie, size = struct.unpack_from(">ii", packed)
        if cookie & ~_WORD_SIZE != _COMPRESSED or size != len(packed) - 8:
            source.refuse(f"line {line}", "the histogram is not of the compressed format V2")
        plain = zlib.decompressobj().decompress(packed[8:], _LARGEST)
        cookie, size, offset, digits, lowest, _, ratio = _HEADER.unpack_from(plain)
    except (binascii.Error, struct.error, zlib.error) as error:
        source.refuse(f"line {line}", f"the histogram is damaged: {error}")
    body = plain[_HEADER.size :]
    if cookie & ~_WORD_SIZE != _PLAIN or size != len(body) or not 0 <= digits <= _MOST_DIGITS or lowest < 1:
        source.refuse(f"line {line}", "the histogram is damaged, or not of format V2")
    if (offset or ratio != _RATIO_OF_ONE) and ratio != _JAVASCRIPT:
        source.refuse(f"line {line}", "the histogram is shifted or one of doubles, which is not supported")
    unit_magnitude = lowest.bit_length() - 1
    half = 1 << max(0, (2 * 10**digits - 1).bit_length() - 1)
    place = 0
    for number in _zigzag(source, line, body):
        if number < 0:
            place -= number
        else:
            bucket = place // half - 1
            inside = place - half * bucket if bucket >= 0 else place
            shift = unit_magnitude + max(bucket, 0)
            if shift > 63:  # noqa: PLR2004 - bits of a value
                source.refuse(f"line {line}", "the histogram is damaged: it has values beyond 64 bits")
            if number:
                yield (inside << shift, (inside << shift) + (1 << shift) - 1), number
            place += 1


def _zigzag(source: Source, line: int, body: bytes) -> Iterator[int]:
    """Give the numbers of a ZigZag LEB128 stream, whose ninth byte has eight bits of the number."""
    number, shift = 0, 0
    for byte in body:
        if shift == 56:  # noqa: PLR2004 - eight bytes of seven bits
            number |= byte << shift
        else:
            number |= (byte & 0x7F) << shift
            if byte & 0x80:
                shift += 7
                continue
        yield (number >> 1) ^ -(number & 1)
        number, shift = 0, 0
    if shift:
        source.refuse(f"line {line}", "the histogram is damaged: it ends inside a number")


IMPORTER: Final = ForeignImporter(
    "hdr-histogram",
    "percentiles or log of HdrHistogram: an interval is an iteration",
    EXPECTED,
    read,
    sign=re.compile(r"Histogram log format|Value\S*\s+Percentile\s", re.MULTILINE | re.ASCII),
)
