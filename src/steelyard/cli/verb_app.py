"""The command line of one verb: what cyclopts makes of its function."""

from __future__ import annotations

from importlib import import_module
from inspect import getdoc
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cyclopts import App, Group, Parameter

from steelyard.cli.verbs import VERBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cyclopts import Argument, ArgumentCollection

_DEFAULT: Final = Parameter(negative="")
_Kind = TypeVar("_Kind", bound=App)


def options_of(study: str) -> str:
    """Give the heading over the options that one study alone takes."""
    return f"Options of {study}"


class StudyApp(App):
    """The command line of a verb, with the options of one study beside those of every study.

    It is for help and completion: the verb itself takes all options, and says whose an option is.
    """

    study: str | None = None

    def assemble_argument_collection(self, **options: Any) -> ArgumentCollection:
        """Give the arguments of the verb but for those of other studies."""
        from steelyard.study import studies  # noqa: PLC0415 - start-up time

        foreign = {options_of(name) for name in studies() if name != self.study}
        found = super().assemble_argument_collection(**options)
        found[:] = [each for each in found if foreign.isdisjoint(_headings(each))]
        return found


def _headings(argument: Argument) -> set[str]:
    groups = argument.parameter.group
    return {each.name for each in groups if isinstance(each, Group)} if isinstance(groups, tuple) else set()


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
    return _app(App, name or f"steelyard {verb}", function, _epilogue(_examples(function)))


def study_app(verb: str, study: str | None, name: str | None = None) -> App:
    """Give the help of a verb that takes options of studies: those of one study, or of none.

    Parameters
    ----------
    verb : str
        ``run`` or ``plan``.
    study : str or None
        The study; without one, the studies are listed.
    name : str or None
        What help calls it; by default the whole command.
    """
    function = _load(verb)
    if study is None:
        told = _studies(verb)
        examples = _examples(function)
    else:
        told = ""
        examples = [
            block for block in _examples(function) if any(f" {study} " in f"{line} " for line in block)
        ]
    app = _app(StudyApp, name or f"steelyard {verb}", function, told + _epilogue(examples))
    app.study = study
    app.group_parameters = Group("Options of every study", sort_key=0)
    return app


def _app(kind: type[_Kind], name: str, function: Callable[..., object], epilogue: str) -> _Kind:
    app = kind(
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
