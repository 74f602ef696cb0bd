"""What is wrong with a command line, in our words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from cyclopts import (
    Argument,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    Token,
    UnknownOptionError,
    UnusedCliTokensError,
)

from steelyard.cli.study_flags import takers

if TYPE_CHECKING:
    from cyclopts import App

    from steelyard.study import Study

_NUMBERS: Final[dict[type | None, str]] = {int: "a whole number", float: "a number"}


def complaint(app: App, error: CycloptsError, study: Study | None = None) -> str:
    """Say what is wrong with a command line; of what is missing also what it is."""
    match error:
        case UnknownOptionError(token=Token(keyword=keyword, value=value)) if study is not None:
            option = (keyword or value).partition("=")[0]
            if others := takers(option):
                named = ", ".join(f"`{each}`" for each in others)
                return f"`{option}` is not an option of the study `{study.name}`; it belongs to {named}"
        case MissingArgumentError(argument=argument) if argument is not None:
            lack = "needs a value" if error.keyword or argument.tokens else "is missing"
            return f"`{error.keyword or _name(argument)}` {lack}\n{_explanation(app, argument)}"
        case UnusedCliTokensError(unused_tokens=[word, *_]):
            return f"`{word}` is one word too many"
        case CoercionError(token=Token(value=value), argument=Argument() as argument):
            kind = next((each for each in _kinds(error.target_type) if each in _NUMBERS), None)
            if kind is not None:
                return f"`{_name(argument)}` is `{value}`; expected {_NUMBERS[kind]}"
    return str(error).strip()


def _kinds(hint: object) -> tuple[Any, ...]:
    """Give the types of a union, or the one type."""
    return get_args(hint) or (hint,)


def _name(argument: Argument) -> str:
    """Give the name by which the help calls it."""
    if argument.field_info.is_positional:
        return argument.name.lstrip("-").upper()
    return argument.name


def _explanation(app: App, argument: Argument) -> str:
    for each in app.assemble_argument_collection(parse_docstring=True):
        if each.field_info.names == argument.field_info.names:
            return " ".join((each.parameter.help or "").split())
    return ""
