"""Results of other tools: described, compared and laid beside what the tools published."""

from __future__ import annotations

from steelyard.study import Study

STUDY = Study(
    name="imported",
    question="What do the results of another tool say, and how certain is it?",
    package=__name__,
    cell_values="cell_values:cell_values",
    has_programs_as_cells=True,
    maps_cells=True,
)
