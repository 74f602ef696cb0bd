"""From a command line to the options of a stability study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.design.study_file import read_study_file
from steelyard.errors import UsageError
from steelyard.run.isolation.registry import technologies
from steelyard.studies.registry import studies
from steelyard.studies.stability.options import StabilityOptions
from steelyard.studies.stability.workloads import WORKLOADS

if TYPE_CHECKING:
    from pathlib import Path


def requested_options(study_file: Path | None, *, quick: bool) -> StabilityOptions:
    """Give the options of a study file, or the defaults; ``--quick`` goes before the file.

    Raises
    ------
    StudyFileError
        If the file is wrong; all problems at once.
    UsageError
        If it is the file of another study.
    """
    if study_file is None:
        return StabilityOptions(quick=quick)
    known = {"isolation": tuple(technologies()), "workload": tuple(WORKLOADS)}
    options_by_study = {name: each.options for name, each in studies().items()}
    found = read_study_file(study_file, options_by_study, known)
    if not isinstance(found, StabilityOptions):
        message = f"study file `{study_file}` is for another study than `stability`"
        raise UsageError(message, hint='its key `study` must be "stability"', code="usage.study")
    return found.model_copy(update={"quick": True}) if quick else found
