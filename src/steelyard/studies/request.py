"""From a command line to the options of a study, and from two requests to what differs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from steelyard.design.study_file import describe_problem, read_study_file
from steelyard.errors import StudyFileError, UsageError
from steelyard.studies.option_types import flag_names
from steelyard.study import studies

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import BaseModel

    from steelyard.study import Study


def requested_options(chosen: Study, study_file: Path | None, given: Mapping[str, object]) -> BaseModel:
    """Give the options of a study file, or the defaults, with what the command line says on top.

    Parameters
    ----------
    chosen : Study
        The study.
    study_file : Path or None
        TOML file.
    given : mapping
        Options of the command line by key of the study file; ``None`` stands for one that was not
        given and leaves the file's value alone.

    Raises
    ------
    StudyFileError
        If the file is wrong; all problems at once.
    UsageError
        If an option is outside its range.
    """
    update = {name: value for name, value in given.items() if value is not None}
    try:
        asked = chosen.options.model_validate(update)
    except ValidationError as error:
        raise _wrong_option(error, update, chosen.options) from error
    if study_file is None:
        return asked
    options = read_study_file(study_file, _OptionsByStudy(studies()), chosen.known_names())
    if not isinstance(options, chosen.options):
        message = f"study file `{study_file}` is for another study than `{chosen.name}`"
        hint = f'its key `study` must be "{chosen.name}"'
        raise StudyFileError(message, hint=hint, code="study-file.other-study")
    return options.model_copy(update=update)


class _OptionsByStudy(Mapping[str, "type[BaseModel]"]):
    """The options of each study, loaded for the one that a file names: another's may be broken."""

    def __init__(self, known: Mapping[str, Study]) -> None:
        self._known = known

    def __getitem__(self, name: str) -> type[BaseModel]:
        return self._known[name].options

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def _wrong_option(error: ValidationError, update: Mapping[str, object], model: type[BaseModel]) -> UsageError:
    details = error.errors(include_url=False)[0]
    name = str(details["loc"][0])
    option = f"--{flag_names(name, model.model_fields[name])[0]}"
    value = update[name]
    shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    message = f"`{option} {shown}`: {describe_problem(details, (name,), model)}"
    return UsageError(message, hint="docs/reference/study-file.md lists every key with its range")


def differing_keys(before: str, now: str) -> list[str]:
    """Say in which keys two requests differ.

    Parameters
    ----------
    before, now : str
        Requests as `Study.request` writes them.

    Returns
    -------
    list of str
        One text per key, in the order of the keys; empty if they are the same.

    Examples
    --------
    >>> differing_keys('{"blocks": 5, "seed": 1}', '{"blocks": 5, "seed": 2}')
    ['`seed` was 1 and is 2']
    """
    first, second = _keys(before), _keys(now)
    names = dict.fromkeys((*first, *second))
    return [
        f"`{name}` was {json.dumps(first.get(name))} and is {json.dumps(second.get(name))}"
        for name in names
        if first.get(name) != second.get(name)
    ]


def _keys(request: str) -> dict[str, Any]:
    found = json.loads(request)
    return found if isinstance(found, dict) else {}
