"""Words of the stability report."""

from __future__ import annotations

from typing import Final

from steelyard.report.page import Pairs

GLOSSARY: Final = Pairs(
    "",
    (
        ("isolation", "the technology around a run: none (bare), a sandbox, a container, a virtual machine"),
        ("setup", "how many processes ran side by side, and what the others did"),
        ("single", "one worker alone on the machine"),
        ("parallel-homogenous", "all workers run the same workload"),
        (
            "parallel-synth-cpu, -memcpy",
            "one measured worker beside processes that burn CPU time or copy memory",
        ),
        (
            "-taskset, -taskset-multi, -numa, -noht",
            (
                "workers bound to one CPU each, to equal sets of CPUs, to a memory node, or to one thread "
                "per core"
            ),
        ),
        ("worker", "a resident launcher that starts the runs of its batch one after the other"),
        ("run", "one process launch"),
        ("iteration", "one timed section; in this study each iteration is a launch of its own"),
        ("cell", "one combination of isolation, setup, workload and input"),
        ("block", "runs that share a disturbance; each block holds every cell once, in random order"),
        ("NA", "not available: the cell is missing by rule or because the machine lacks the technology"),
        ("own clock", "what the program says of itself (cpu, wall)"),
        ("outside clock", "what its surroundings say of it (outside-cpu, outside-wall)"),
        ("cv", "coefficient of variation: standard deviation over mean"),
        (
            "tolerance",
            (
                "the largest cv, and the largest error of a clock, that the reader accepts; "
                "`steelyard analyse` takes another one with `--tolerance`"
            ),
        ),
        (
            "gate",
            (
                "looks at the machine around each batch: load of other programs, time taken by the "
                "hypervisor, swapping, heat"
            ),
        ),
        ("dispersion", "spread of repeated measurements of the same thing, relative to their size"),
        (
            "published class",
            (
                "higher, lesser, same, overlap or NA: how two bootstrap intervals lie to each other, by the "
                "rule of the published study"
            ),
        ),
        (
            "verdict",
            (
                "slower, faster, equivalent, inconclusive: Steelyard's own decision, at the level of "
                "batches and with a margin of relevance"
            ),
        ),
        (
            "interval",
            (
                "the range that contains the true value in the stated share of repetitions; `not "
                "guaranteed` where the data are too few for that"
            ),
        ),
        ("A/A control", "the same cell measured twice under two names; it must show no difference"),
        ("finding", "an estimate with a verdict; every number of this page belongs to one"),
    ),
)
