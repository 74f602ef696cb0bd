"""Call a monitored method many times and keep how long each call took.

After the design of MooBench (Waller, Ehmke and Hasselbring, "Including performance benchmarks into continuous
integration to enable DevOps", SIGSOFT SEN 40(2), 2015): a function calls itself to a depth and, innermost,
waits busily for the method time; a probe covers every call of it. Begin and duration of each call go to a
mapped file of full size, every page of which was written to before the first call: two little-endian
numbers of 8 bytes [ns].
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import mmap
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.sdk.trace import TracerProvider

THREAD = "steelyard-calls"
CALL_BYTES = 16
PR_SET_NAME = 15


def _wait(method_ns: int) -> int:
    end = perf_counter_ns() + method_ns
    now = perf_counter_ns()
    while now < end:
        now = perf_counter_ns()
    return now


def plain_method() -> Callable[[int, int], int]:
    """Give the method without a probe."""

    def call(method_ns: int, depth: int) -> int:
        if depth > 1:
            return call(method_ns, depth - 1)
        return _wait(method_ns)

    return call


def probed_method(provider: TracerProvider) -> Callable[[int, int], int]:
    """Give the method with a span of OpenTelemetry around every call of it."""
    tracer = provider.get_tracer("steelyard.monitored")

    @tracer.start_as_current_span("call")
    def call(method_ns: int, depth: int) -> int:
        if depth > 1:
            return call(method_ns, depth - 1)
        return _wait(method_ns)

    return call


def set_up_provider(probe: str) -> TracerProvider:
    """Make what hands out the probes: turned off, without anybody who takes spans, or with a writer.

    Parameters
    ----------
    probe : str
        ``inactive``, ``collecting``, or ``writing``: to the standard output, a line for each span.
    """
    if probe == "inactive":
        os.environ["OTEL_SDK_DISABLED"] = "true"
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - absent where nothing is probed

    provider = TracerProvider()
    if probe == "writing":
        from opentelemetry.sdk.trace.export import (  # noqa: PLC0415
            BatchSpanProcessor,
            ConsoleSpanExporter,
        )

        exporter = ConsoleSpanExporter(formatter=lambda span: span.to_json(indent=None) + "\n")
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def call_only(call: Callable[[int, int], int], options: argparse.Namespace, numbers: range) -> None:
    """Make the calls of these numbers and time none."""
    method_ns, depth = options.method_ns, options.depth
    for _ in numbers:
        call(method_ns, depth)


def call_recorded(
    call: Callable[[int, int], int], options: argparse.Namespace, numbers: range, record: memoryview[int]
) -> None:
    """Make the calls of these numbers, and keep begin and duration of each."""
    method_ns, depth = options.method_ns, options.depth
    for place in range(2 * numbers.start, 2 * numbers.stop, 2):
        start = perf_counter_ns()
        call(method_ns, depth)
        end = perf_counter_ns()
        record[place] = start
        record[place + 1] = end - start


def make_record(path: Path, calls: int) -> mmap.mmap:
    """Make the mapped file for so many calls, and write to every page of it."""
    size = calls * CALL_BYTES
    with path.open("w+b") as file:
        file.truncate(size)
        mapped = mmap.mmap(file.fileno(), size)
    for place in range(0, size, mmap.PAGESIZE):
        mapped[place] = 0
    return mapped


def execute(call: Callable[[int, int], int], options: argparse.Namespace) -> dict[str, int]:
    """Execute the loop, and give when it and its measured part began and how long they took [ns]."""
    # The kernel's name of this thread: what watches the calls from outside finds them by it.
    ctypes.CDLL(None).prctl(PR_SET_NAME, THREAD.encode())
    if options.record is None:
        return _timed(options, lambda numbers: call_only(call, options, numbers))
    with (
        make_record(options.record, options.calls) as mapped,
        memoryview(mapped) as view,
        view.cast("Q") as record,
    ):
        return _timed(options, lambda numbers: call_recorded(call, options, numbers, record))


def _timed(options: argparse.Namespace, loop: Callable[[range], None]) -> dict[str, int]:
    start = perf_counter_ns()
    loop(range(options.warm_up_calls))
    measured = perf_counter_ns()
    loop(range(options.warm_up_calls, options.calls))
    end = perf_counter_ns()
    return {
        "loop_start_ns": start,
        "loop_ns": end - start,
        "measured_start_ns": measured,
        "measured_ns": end - measured,
    }


def _parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Calls of a monitored method, each timed.")
    parser.add_argument("--about", type=Path, required=True, help="where one line of JSON goes")
    parser.add_argument(
        "--record", type=Path, help="where the calls go; absent: only the whole loop is timed"
    )
    parser.add_argument("--calls", type=int, default=2_000_000)
    parser.add_argument("--warm-up-calls", type=int, default=0, help="of them, before the measured ones")
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--method-ns", type=int, default=500)
    parser.add_argument("--probe", choices=("none", "inactive", "collecting", "writing"), default="none")
    options = parser.parse_args(words)
    if not 0 <= options.warm_up_calls < options.calls:
        parser.error(
            f"--warm-up-calls {options.warm_up_calls} leaves none of {options.calls} calls to measure"
        )
    return options


def main(words: list[str]) -> None:
    """Execute what the words of the command line ask for."""
    options = _parsed(words)
    provider = None
    call = plain_method()
    if options.probe != "none":
        provider = set_up_provider(options.probe)
        call = probed_method(provider)
    times = execute(call, options)
    about = {
        "language": "python",
        "runtime": platform.python_version(),
        "machine": platform.python_implementation(),
        "thread": THREAD,
        "calls": options.calls,
        "warm_up_calls": options.warm_up_calls,
        "depth": options.depth,
        "method_ns": options.method_ns,
        "stamps_per_call": 0 if options.record is None else 2,
        **times,
        "collectors": [
            {"name": f"generation {number}", "collections": each["collections"]}
            for number, each in enumerate(gc.get_stats())
        ],
    }
    if provider is not None:
        about["opentelemetry"] = version("opentelemetry-sdk")
        provider.shutdown()
    options.about.write_text(json.dumps(about) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
