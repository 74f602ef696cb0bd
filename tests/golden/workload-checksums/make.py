"""Compute the checksums in `table.csv` with nothing but the published definitions.

Shares no code with the programs: plain integers, `struct` for single precision, the standard
library's `sorted` and `bisect`. Run as `python3 make.py > table.csv`.
"""

from __future__ import annotations

import bisect
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

WORD = (1 << 64) - 1
DATA = (0, 0x5374_6565_6C79_6172)
KEYS = (0x9E37_79B9_7F4A_7C15, 0x6C6F_6F6B_2D75_7073)


def draw(seed: int, stream: tuple[int, int], count: int) -> list[int]:
    """Draw from PCG-XSH-RR 64/32 as in O'Neill (2014), section 6.3, and its reference library."""
    mask, sequence = stream
    increment = (sequence << 1 | 1) & WORD
    state = ((seed ^ mask) + increment) * 6364136223846793005 + increment & WORD
    words = []
    for _ in range(count):
        shifted = ((state >> 18 ^ state) >> 27) & 0xFFFF_FFFF
        turn = state >> 59
        words.append((shifted >> turn | shifted << (32 - turn) & 0xFFFF_FFFF) & 0xFFFF_FFFF)
        state = state * 6364136223846793005 + increment & WORD
    return words


def checksum(words: Iterable[int]) -> str:
    """FNV-1a over whole words."""
    state = 0xCBF29CE484222325
    for word in words:
        state = (state ^ word) * 0x100000001B3 & WORD
    return f"{state:016x}"


def single(number: float) -> float:
    """Round to single precision."""
    return struct.unpack("<f", struct.pack("<f", number))[0]


def exp_float(x: int) -> int:
    """(1 + x/1024)^1024, each multiplication rounded to single precision."""
    # A product of two single-precision numbers is exact in double precision: one rounding only.
    base, product = single(1 + x / 1024), 1.0
    for _ in range(1024):
        product = single(product * base)
    return struct.unpack("<I", struct.pack("<f", product))[0]


def exp_double(x: int) -> int:
    """(1 + x/1024)^1024 in double precision."""
    base, product = 1 + x / 1024, 1.0
    for _ in range(1024):
        product *= base
    return struct.unpack("<Q", struct.pack("<d", product))[0]


def binary(code: int) -> int:
    """Gray code to binary by prefix exclusive or, in five steps instead of 32."""
    for shift in (16, 8, 4, 2, 1):
        code ^= code >> shift
    return code


def result(kernel: str, size: int, operations: int, seed: int) -> list[int]:
    """Give the words whose checksum a kernel prints."""
    data = draw(seed, DATA, size)
    if kernel in {"exp_float", "exp_double"}:
        power = {x: (exp_float if kernel == "exp_float" else exp_double)(x) for x in range(32)}
        return [power[word >> 27] for word in data[:operations]]
    if kernel == "bsearch":
        ordered = sorted(data)
        return [bisect.bisect_left(ordered, key) for key in draw(seed, KEYS, operations)]
    if kernel == "gray2bin":
        return [binary(word) for word in data[:operations]]
    return sorted(data)


CASES = [
    ("exp_float", 65536, 65536, 1),
    ("exp_float", 1000, 2500, 7),
    ("exp_double", 65536, 65536, 1),
    ("exp_double", 1000, 600, 7),
    ("bsearch", 65536, 1048576, 1),
    ("bsearch", 1000, 3000, 18446744073709551615),
    ("gray2bin", 1048576, 1048576, 1),
    ("gray2bin", 1000, 1500, 7),
    ("insertion_sort", 16384, None, 1),
    ("insertion_sort", 1, None, 0),
    ("qsort", 1048576, None, 1),
    ("qsort", 131072, None, 1),
    ("qsort", 131072, None, 12345678901234567890),
    ("qsort", 2, None, 7),
]

if __name__ == "__main__":
    sys.stdout.write("kernel,size,operations,seed,checksum\n")
    for kernel, size, operations, seed in CASES:
        words = result(kernel, size, operations or size, seed)
        sys.stdout.write(f"{kernel},{size},{operations or ''},{seed},{checksum(words)}\n")
