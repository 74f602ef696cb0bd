"""Quicksort in Python: the same input, checksum and report as `steelyard-work kernel qsort`.

Usage: python3 qsort.py --size N --seed S [--repeat R] [--warmup W] [--metrics-stdout]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

WORD = (1 << 64) - 1
HALF = (1 << 32) - 1
MULTIPLIER = 6364136223846793005
STREAM = 0x5374_6565_6C79_6172


def draw_words(seed: int, count: int) -> list[int]:
    """Draw 32-bit words from PCG-XSH-RR 64/32, stream and seed as in the native program."""
    increment = (STREAM << 1 | 1) & WORD
    state = ((seed + increment) * MULTIPLIER + increment) & WORD
    words = []
    for _ in range(count):
        shifted = ((state >> 18 ^ state) >> 27) & HALF
        turn = state >> 59
        words.append((shifted >> turn | shifted << (32 - turn)) & HALF)
        state = (state * MULTIPLIER + increment) & WORD
    return words


def quick_sort(numbers: list[int], first: int, end: int) -> None:
    """Sort the numbers from `first` to before `end`: Hoare's partition around the middle element."""
    if end - first <= 1:
        return
    pivot = numbers[first + (end - first - 1) // 2]
    left, right = first, end
    while left < right:
        while numbers[left] < pivot:
            left += 1
        while numbers[right - 1] > pivot:
            right -= 1
        if left < right:
            numbers[left], numbers[right - 1] = numbers[right - 1], numbers[left]
            left += 1
            right -= 1
    quick_sort(numbers, first, right)
    quick_sort(numbers, left, end)


def checksum(words: Iterable[int]) -> str:
    """FNV-1a over whole words, as sixteen hexadecimal digits."""
    state = 0xCBF29CE484222325
    for word in words:
        state = ((state ^ word) * 0x100000001B3) & WORD
    return f"{state:016x}"


def timed(numbers: list[int]) -> tuple[int, int]:
    """Sort and give CPU and wall time in ns."""
    wall = time.monotonic_ns()
    cpu = time.process_time_ns()
    quick_sort(numbers, 0, len(numbers))
    cpu = time.process_time_ns() - cpu
    wall = time.monotonic_ns() - wall
    return cpu, wall


def metrics_descriptor(parser: argparse.ArgumentParser, *, on_stdout: bool) -> int | None:
    """Give the descriptor to report on, or None."""
    text = os.environ.get("STEELYARD_METRICS_FD", "")
    if on_stdout:
        return 1
    if text and not (text.isascii() and text.isdecimal()):
        parser.error(f"STEELYARD_METRICS_FD is `{text}`; allowed: the number of an open descriptor")
    return int(text) if text else None


def whole(smallest: int, largest: int) -> Callable[[str], int]:
    """Give a reader of whole numbers within bounds."""

    def read(text: str) -> int:
        if text.isascii() and text.isdecimal() and smallest <= int(text) <= largest:
            return int(text)
        message = f"`{text}` is not a whole number from {smallest} to {largest}"
        raise argparse.ArgumentTypeError(message)

    return read


def main() -> int:
    """Execute the command line; exit codes: 0 done, 1 cannot write, 2 wrong usage, 3 wrong result."""
    parser = argparse.ArgumentParser(prog="qsort.py", allow_abbrev=False)
    parser.add_argument("--size", type=whole(1, HALF), required=True)
    parser.add_argument("--seed", type=whole(0, WORD), required=True)
    parser.add_argument("--repeat", type=whole(1, 1_000_000), default=1)
    parser.add_argument("--warmup", type=whole(0, 1_000_000), default=0)
    parser.add_argument("--metrics-stdout", action="store_true")
    options = parser.parse_args()
    descriptor = metrics_descriptor(parser, on_stdout=options.metrics_stdout)
    prefix = "#steelyard " if descriptor == 1 else ""
    words = draw_words(options.seed, options.size)
    expected = sorted(words)
    lines = []
    for iteration in range(1, options.warmup + options.repeat + 1):
        numbers = list(words)
        cpu, wall = timed(numbers)
        phase = "warmup" if iteration <= options.warmup else "measure"
        lines.append(
            f"{prefix}cpu {cpu} ns {iteration} {phase}\n{prefix}wall {wall} ns {iteration} {phase}\n"
        )
        if numbers != expected:
            print("qsort.py: the numbers are not sorted", file=sys.stderr)
            return 3
    try:
        print(checksum(expected), flush=True)
        if descriptor is not None:
            text = "".join(lines).encode()
            while text:
                text = text[os.write(descriptor, text) :]
    except OSError as error:
        print(f"qsort.py: cannot write to descriptor {descriptor}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
