"""Words of the scaling report, explained on its page."""

from __future__ import annotations

from typing import Final

from steelyard.report.page import Pairs

GLOSSARY: Final = Pairs(
    "",
    (
        ("speed-up", "median rate of the parallel program over the median rate of its baseline"),
        ("ideal", "a speed-up equal to the number of workers"),
        ("shy", "how far the speed-up stays below ideal, in percent of ideal"),
        (
            "contention, coherence",
            "in the universal law: the serial share, and the cost of every pair of workers",
        ),
        (
            "serial fraction",
            "serial share of the work, if nothing else cost time; where it grows, something else does",
        ),
        ("machine", "speed-up of threads that share nothing: what they lack, no program can gain"),
        ("trial", "one launch of the program; a block holds one trial of every cell, in an order of its own"),
        ("oversubscribed", "more workers than cores; the dispatcher of the packets program comes on top"),
    ),
)
PACKETS_GLOSSARY: Final = Pairs(
    "The packets program",
    (
        (
            "packet, W",
            "a checksum of W iterations on average; a dispatcher deals packets to one queue per worker",
        ),
        ("uniform, exponential", "all sources have mean W; or each a mean of its own, W on average"),
        ("LockFree", "one worker per queue, no lock"),
        ("HomeQueue", "the same, with a lock held until a packet was taken"),
        ("leader/followers", "no dispatcher: a worker that is out of packets draws the next ones for itself"),
        ("Awesome", "each worker sweeps all queues from its own on, taking from any whose lock is free"),
        ("overhead", "LockFree rate over HomeQueue rate with one worker: a lock nobody contends for"),
    ),
)
