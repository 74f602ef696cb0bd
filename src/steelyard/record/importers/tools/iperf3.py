"""iperf3's JSON: a test is a run, its intervals are iterations; omitted ones are its warm-up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import MEASURE, WARM_UP, ForeignFile
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.json_node import read_json_documents
from steelyard.record.importers.tools.summary import Summary, levels, note

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.json_node import Node
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = "iperf3's JSON (`iperf3 -c HOST --json`): an object with `start`, `intervals` and `end`"
_FACTORS: Final = {
    "num_streams": "streams",
    "blksize": "block_bytes",
    "reverse": "reverse",
    "bidir": "bidirectional",
}
_OF_INTERVAL: Final = {
    "bits_per_second": ("throughput", "bit/s"),
    "retransmits": ("retransmits", "count"),
    "packets": ("packets", "count"),
    "lost_packets": ("lost_packets", "count"),
    "jitter_ms": ("jitter", "ms"),
}
_OF_TEST: Final = {**_OF_INTERVAL, "bytes": ("transferred", "bytes"), "seconds": ("duration", "s")}
_OF_SENDER: Final = {
    member: _OF_TEST[member] for member in ("bits_per_second", "retransmits", "packets", "bytes", "seconds")
}
_RTT: Final = {"min_rtt": "min", "mean_rtt": "mean", "max_rtt": "max"}
_ENDS: Final = {"sum_sent": "sent", "sum_received": "received"}
_REVERSED: Final = "_bidir_reverse"
_FAILED: Final = 1
"""Exit code of a test that iperf3 gave up."""


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read the JSON of tests.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    found = ForeignFile("json", facts={"tool": "iperf3"})
    # A server writes one document for each test.
    for document in read_json_documents(source):
        _test(document, found)
    return found


def _test(document: Node, found: ForeignFile) -> None:
    """Add the run of a test; of one that failed, what it measured until then."""
    start, end = document.member("start"), document.member("end")
    error = document.optional("error")
    if error is not None:
        note(found, f"a test failed: {error.shown()}")
        if not document.member("intervals").elements():
            return
    for name in ("version", "system_info"):
        found.facts[name] = start.member(name).shown()
    if (stamp := start.optional("timestamp")) is not None:
        found.facts["date"] = stamp.member("time").shown()
    test = start.member("test_start")
    factors = {factor: test.member(name).shown() for name, factor in _FACTORS.items() if name in test.value}
    factors = {name: level for name, level in factors.items() if name != "bidirectional" or level != "0"}
    run = Summary(found, levels(f"iperf3 {test.member('protocol').text()}", **factors))
    for iteration, interval in enumerate(document.member("intervals").elements(), start=1):
        for name in ("sum", f"sum{_REVERSED}"):
            if (total := interval.optional(name)) is not None:
                phase = WARM_UP if total.member("omitted").value is True else MEASURE
                _add(run, total, _OF_INTERVAL, name.removeprefix("sum"), iteration, phase)
    _whole(run, end, is_server=start.optional("accepted_connection") is not None)
    run.end(None if error is None else _FAILED)


def _whole(run: Summary, end: Node, *, is_server: bool) -> None:
    """Add the values of the whole test, and the round trips of each stream as iperf3 published them.

    What an end cannot know is 0 in its file: of a server what the client did, of a sender jitter and losses,
    of a receiver round trips.
    """
    for name, node in end.members():
        side = _ENDS.get(name.removesuffix(_REVERSED))
        if side and not (is_server and node.member("bits_per_second").duration() == 0):
            ending = f"_{side}" + ("_reverse" if name.endswith(_REVERSED) else "")
            _add(run, node, _OF_TEST if side == "received" else _OF_SENDER, ending)
    if (shares := end.optional("cpu_utilization_percent")) is not None:
        for name, share in shares.members():
            if name.endswith("_total") and not (is_server and name.startswith("remote")):
                run.value(f"cpu_{name.removesuffix('_total')}", share.duration(), "percent")
    streams = [] if (listed := end.optional("streams")) is None else listed.elements()
    for number, stream in enumerate(streams, start=1):
        sender = stream.optional("sender")
        if sender is not None and (most := sender.optional("max_rtt")) is not None and most.duration() > 0:
            metric = "rtt" if len(streams) == 1 else f"rtt_of_stream_{number}"
            run.statistics(metric, sender, _RTT, "us")


def _add(
    run: Summary,
    total: Node,
    names: dict[str, tuple[str, str]],
    ending: str,
    iteration: int = 1,
    phase: str = MEASURE,
) -> None:
    """Add those numbers of a sum that are there."""
    for member, (metric, unit) in names.items():
        if (number := total.optional(member)) is not None:
            metric_of_side = metric + ending.replace(_REVERSED, "_reverse")
            run.value(metric_of_side, number.duration(), unit, iteration, phase)


IMPORTER: Final = ForeignImporter(
    "iperf3",
    "iperf3's JSON: an interval is an iteration",
    EXPECTED,
    read,
    sign=re.compile(r'^Connecting to host |"start":\s*\{\s*"connected"', re.MULTILINE | re.ASCII),
)
