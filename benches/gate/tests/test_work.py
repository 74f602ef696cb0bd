"""Benchmarks of pytest-benchmark."""

import json
import re
from collections.abc import Callable

NUMBERS = [number * 7919 % 100003 for number in range(20000)]
TEXT = " ".join(map(str, NUMBERS))

Benchmark = Callable[..., object]


def test_sort(benchmark: Benchmark) -> None:
    benchmark(sorted, NUMBERS)


def test_json(benchmark: Benchmark) -> None:
    benchmark(lambda: json.loads(json.dumps(NUMBERS)))


def test_pattern(benchmark: Benchmark) -> None:
    benchmark(re.findall, r"([0-9]+)1", TEXT)
