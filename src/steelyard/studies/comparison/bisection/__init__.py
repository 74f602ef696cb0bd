"""Bisection of a history: which commit made a program slower or faster, and how probable that is.

It is a comparison in which one of the commands changes: it shares runs, hooks and gate with `compare`.
"""

from __future__ import annotations

from steelyard.study import Study

STUDY = Study(
    name="bisect",
    question="Which commit changed the program?",
    package=__name__,
    has_programs_as_cells=True,
)
