"""Types of options that several studies take."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - pydantic reads annotations
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationInfo
from pydantic.functional_validators import AfterValidator, BeforeValidator

from steelyard.design.study_file import require_known
from steelyard.errors import InternalError
from steelyard.model import Limits
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

GatePolicy = Literal["record", "strict"]
T = TypeVar("T")

BYTES_PER_MIB: Final = 1 << 20
MOST_WORKERS: Final = 1024
MOST_RETRIES: Final = 10

CLOSED: Final = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
"""Options are values, and a key that is not known is a mistake."""


@dataclass(frozen=True, slots=True)
class Flag:
    """How the command line spells an option of a study file: part of the type of its field.

    Every field that has a description is an option of the command line; one without a `Flag` has the name of
    its key, and its value is read by its type: words and numbers of a list by commas.

    Parameters
    ----------
    names : tuple of str
        What it is called instead of its key; the first name stands in messages.
    read : callable or None
        Reads one word of the command line; ``ValueError`` if it cannot be read.
    allowed : str
        What `read` reads, for the error.
    has_commas : bool
        Whether a value of the list has commas itself, so that several values are given by several options.
    """

    names: tuple[str, ...] = ()
    read: Callable[[str], object] | None = None
    allowed: str = ""
    has_commas: bool = False


def flag_of(info: FieldInfo) -> Flag:
    """Give how the command line spells a field of options."""
    return next((each for each in info.metadata if isinstance(each, Flag)), Flag())


def flag_names(key: str, info: FieldInfo) -> tuple[str, ...]:
    """Give the names of a field on the command line, without dashes."""
    return flag_of(info).names or (key.replace("_", "-"),)


def known_name(kind: str) -> AfterValidator:
    """Give the validator of names of a kind of thing that plug-ins provide."""

    def check(name: str, info: ValidationInfo) -> str:
        return require_known(kind, name, info)

    return AfterValidator(check)


def _list_or_auto(value: object) -> object:
    if value == "auto" or isinstance(value, tuple):
        return value
    message = 'allowed: "auto" or a list of whole numbers'
    raise ValueError(message)


def _choice(value: object) -> str:
    return "auto" if isinstance(value, str) else "list"


TuningName = Annotated[str, known_name("tuning")]
WorkerCount = Annotated[int, Field(ge=1, le=MOST_WORKERS)]
Workers = Annotated[
    Annotated[Literal["auto"], Tag("auto")]
    | Annotated[tuple[WorkerCount, ...], Field(min_length=1), Tag("list")],
    Discriminator(_choice),
    BeforeValidator(_list_or_auto),
]


class LimitOptions(BaseModel):
    """Bounds of each run; a run that reaches one is ended and says so in its status."""

    model_config = CLOSED

    cpu_time_s: float | None = Field(default=None, gt=0, le=86_400)
    wall_time_s: float | None = Field(default=600.0, gt=0, le=86_400)
    memory_mib: int | None = Field(default=None, ge=1, le=1 << 30)
    process_count: int | None = Field(default=None, ge=1, le=1 << 22)
    file_size_mib: int | None = Field(default=None, ge=0, le=1 << 30)
    output_mib: int | None = Field(default=None, ge=0, le=1 << 20)

    def limits(self) -> Limits:
        """Give the limits in ns and bytes."""
        return Limits(
            cpu_time_ns=_scaled(self.cpu_time_s, NS_PER_S),
            wall_time_ns=_scaled(self.wall_time_s, NS_PER_S),
            memory_bytes=_scaled(self.memory_mib, BYTES_PER_MIB),
            process_count=self.process_count,
            file_size_bytes=_scaled(self.file_size_mib, BYTES_PER_MIB),
            output_bytes=_scaled(self.output_mib, BYTES_PER_MIB),
        )


class StudyOptions(BaseModel):
    """What a study file may say about every study."""

    model_config = CLOSED

    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    quick: bool = False
    limits: LimitOptions = LimitOptions()
    gate: GatePolicy = "record"
    gate_retries: int | None = Field(default=None, ge=0, le=MOST_RETRIES)
    tuning: tuple[TuningName, ...] = ()
    out: str | None = Field(default=None, min_length=1)


def _scaled(value: float | None, size: int) -> int | None:
    return None if value is None else round(value * size)


def given(value: T | None) -> T:
    """Give the value of an option that settling has filled in.

    Raises
    ------
    InternalError
        If it is still open.
    """
    if value is None:
        message = "an option of the study was not settled"
        raise InternalError(message, code="internal.options")
    return value
