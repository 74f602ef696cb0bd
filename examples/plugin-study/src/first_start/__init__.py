"""A study that asks whether the first start of a program takes longer than the next ones.

`options` says what may be chosen, `design` what is run, `analysis` what follows from it, `report` how it
is told.
"""

from __future__ import annotations

from steelyard.study import Study

STUDY = Study(
    name="first-start",
    question="Does the first start of a program take longer than the next ones?",
    package=__name__,
)
