"""The command line of one verb: what cyclopts makes of its function."""

from __future__ import annotations

from importlib import import_module
from inspect import getdoc
from typing import TYPE_CHECKING, Final

from cyclopts import App, Group, Parameter

from steelyard.cli.verbs import VERBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from steelyard.study import Study

_DEFAULT: Final = Parameter(negative="")


def verb_app(verb: str, name: str | None = None) -> App:
    """Give the command line of a verb.

    Parameters
    ----------
    verb : str
        Its name, as in ``export simgrid``.
    name : str or None
        What help calls it; by default the whole command.
    """
    function = _load(verb)
    return _app(name or f"steelyard {verb}", function, _epilogue(_examples(function)))


def study_app(verb: str, study: Study | None, name: str | None = None) -> App:
    """Give the command line of a verb that takes options of studies: those of one study, or of none.

    Parameters
    ----------
    verb : str
        ``run`` or ``plan``.
    study : Study or None
        The study; without one, the help lists the studies.
    name : str or None
        What help calls it; by default the whole command.
    """
    from steelyard.cli.study_flags import with_flags  # noqa: PLC0415 - start-up time

    function = _load(verb)
    if study is None:
        told = _studies(verb) + _epilogue(_examples(function))
    else:
        told = _epilogue(_examples_of(study, verb))
    app = _app(name or f"steelyard {verb}", with_flags(function, study), told)
    app.group_parameters = Group("Options of every study", sort_key=0)
    return app


def _app(name: str, function: Callable[..., object], epilogue: str) -> App:
    app = App(
        name=name,
        version_flags=[],
        suppress_keyboard_interrupt=False,
        help_format="markdown",
        default_parameter=_DEFAULT,
        help_epilogue=epilogue,
    )
    app.default(function)
    return app


def _load(verb: str) -> Callable[..., object]:
    module, _, name = VERBS[verb].target.partition(":")
    function: Callable[..., object] = getattr(import_module(module), name)
    return function


def _studies(verb: str) -> str:
    from steelyard.study import studies  # noqa: PLC0415 - start-up time

    items = "\n".join(f"- `{name}`: {each.question}" for name, each in studies().items())
    return f"Studies; `steelyard {verb} STUDY --help` lists the options of one:\n\n{items}\n\n"


def _examples_of(study: Study, verb: str) -> list[list[str]]:
    """Give the examples of a study that are about a verb."""
    return [
        [f"{caption}::", *command.splitlines()]
        for caption, command in study.examples
        if command.startswith(f"steelyard {verb} ")
    ]


def _examples(function: Callable[..., object]) -> list[list[str]]:
    """Give the Examples section of a docstring, which cyclopts leaves out: a caption and its commands."""
    _, _, text = (getdoc(function) or "").partition("Examples\n--------\n")
    blocks: list[list[str]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.endswith("::") or not blocks or not blocks[-1][0].endswith("::"):
            blocks.append([line])
        else:
            blocks[-1].append(line)
    return blocks


def _epilogue(examples: Sequence[Sequence[str]]) -> str:
    lines = [each for block in examples for each in _shown(block)]
    return "\n\n".join(["Examples:", *lines]) if lines else ""


def _shown(block: Sequence[str]) -> Iterator[str]:
    for line in block:
        yield line.removesuffix(":") if line.endswith("::") else f"`{line}`"
