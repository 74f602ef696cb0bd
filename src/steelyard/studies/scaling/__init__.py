"""The scaling study: speed-up over workers, its loss, and what explains it."""

from __future__ import annotations

from steelyard.study import Study

STUDY = Study(
    name="scaling",
    question="How does a program scale with its workers, against the ideal, and what holds it back?",
    package=__name__,
    duration="packets:packets_seconds",
    result_comparison="result_comparison:compare_folders",
    examples=(
        (
            "How far your program scales on this machine",
            "steelyard run scaling --command 'prog --threads {workers}'",
        ),
    ),
)
