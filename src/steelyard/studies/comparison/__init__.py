"""Comparing commands: contenders, terms, measuring, verdicts."""

from __future__ import annotations

from steelyard.study import Study

STUDY = Study(
    name="compare",
    question="Which command takes more?",
    package=__name__,
    so_far="replay:findings_so_far",
    cell_values="cell_values:cell_values",
    part="hosts.part:execute_part",
    has_programs_as_cells=True,
)
