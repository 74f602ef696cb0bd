"""Options of the command line that belong to one study, made from what its study file may say."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import field, fields, make_dataclass
from functools import wraps
from inspect import signature
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from cyclopts import Parameter

from steelyard.cli.amounts import WholeOrNone
from steelyard.errors import CapabilityError, UsageError
from steelyard.studies.option_types import flag_names, flag_of
from steelyard.study import studies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic.fields import FieldInfo

    from steelyard.studies.option_types import Flag
    from steelyard.study import Study

_SWITCH: Final = Annotated[bool, Parameter(negative="", show_default=False)]
_WORDS: Final = Annotated[tuple[str, ...] | None, Parameter(negative="")]


def heading(study: str) -> str:
    """Give the heading over the options that one study alone takes."""
    return f"Options of {study}"


def with_flags(function: Callable[..., object], study: Study | None) -> Callable[..., object]:
    """Give the function of a verb whose parameter `own` has the options of a study.

    Parameters
    ----------
    function : callable
        It takes `own`, and reads it by `given`.
    study : Study or None
        The study; without one, `own` takes nothing.
    """

    @wraps(function)
    def verb(*words: Any, **options: Any) -> object:
        return function(*words, **options)

    kind = None if study is None else _flags(study)
    taken = Annotated[None, Parameter(parse=False)] if kind is None else kind
    names = ", ".join(f"`{name}`" for name in studies())
    study_name = Annotated[str, Parameter(name="study", help=f"The study: {names}.")]
    hints = get_type_hints(function, include_extras=True)
    verb.__annotations__ = {**hints, "name": study_name, "own": taken}
    declared = signature(function)
    own = declared.parameters["own"].replace(default=None if kind is None else kind())
    verb.__signature__ = declared.replace(parameters=[*({**declared.parameters, "own": own}).values()])  # type: ignore[attr-defined]
    return verb


def given(chosen: Study, own: object) -> dict[str, object]:
    """Read what was said by the options of a study.

    Parameters
    ----------
    chosen : Study
        The study.
    own : object
        What the command line made of the options; ``None`` if none was given.

    Returns
    -------
    dict
        By key of the study file; what was not said is ``None``.

    Raises
    ------
    UsageError
        If a word cannot be read.
    """
    if own is None:
        return {}
    return {each.name: _value(getattr(own, each.name), each.name, chosen) for each in fields(own)}  # type: ignore[arg-type]


def takers(option: str) -> list[str]:
    """Give the studies with an option, as in `--transport`; one that cannot be used has none."""
    word = option.removeprefix("--")
    found = []
    for name, each in studies().items():
        with suppress(CapabilityError):
            if any(word in flag_names(key, info) for key, info in _flagged(each)):
                found.append(name)
    return found


def _flagged(study: Study) -> Iterator[tuple[str, FieldInfo]]:
    return ((key, info) for key, info in study.options.model_fields.items() if info.description)


def _flags(study: Study) -> type[Any] | None:
    """Make the class of the options of a study, whose fields are ``None`` for what is not said."""
    made = []
    for key, info in _flagged(study):
        named = Parameter(name=[f"--{name}" for name in flag_names(key, info)], help=info.description)
        made.append((key, Annotated[_typed(info), named], field(default=None)))
    if not made:
        return None
    # The command line looks into a class only where its module is not one of Python's own.
    kind = make_dataclass("Flags", made, frozen=True, namespace={"__module__": __name__})
    return Parameter(name="*", group=heading(study.name))(kind)


def _kind(info: FieldInfo) -> Any:
    """Give the type of a field without `None` and without what stands beside it."""
    hint = info.annotation
    if get_origin(hint) in {Union, UnionType}:
        hint = next(each for each in get_args(hint) if each is not NoneType)
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _typed(info: FieldInfo) -> Any:
    kind = _kind(info)
    if get_origin(kind) is tuple:
        return _WORDS
    if flag_of(info).read is None and kind in {bool, int, float}:
        return {bool: _SWITCH | None, int: WholeOrNone, float: float | None}[kind]
    return str | None


def _value(said: object, key: str, study: Study) -> object:
    """Read the words of one option."""
    info = study.options.model_fields[key]
    flag, kind = flag_of(info), _kind(info)
    if said is None or (get_origin(kind) is not tuple and flag.read is None):
        return said
    inner = get_args(kind)[0] if get_origin(kind) is tuple else kind
    number = inner.__origin__ if get_origin(inner) is Annotated else inner
    read = flag.read or (number if number in {int, float} else str)
    words = [] if isinstance(said, str) else [word for text in said for word in _split(text, flag)]  # type: ignore[attr-defined]
    try:
        if isinstance(said, str):
            return read(said)
        return tuple(_flat(map(read, words))) or None
    except ValueError as error:
        shown = said if isinstance(said, str) else ",".join(words)
        allowed = flag.allowed or "numbers separated by commas"
        message = f"`--{flag_names(key, info)[0]} {shown}`: allowed: {allowed}"
        raise UsageError(message, hint=f"steelyard run {study.name} --help") from error


def _split(text: str, flag: Flag) -> list[str]:
    if flag.has_commas:
        return [text]
    return [word.strip() for word in text.split(",") if word.strip()]


def _flat(values: Iterator[object]) -> Iterator[object]:
    """Give values, and those of a range for the range."""
    for value in values:
        if isinstance(value, tuple):
            yield from value
        else:
            yield value
