"""What a study file, or the command line, may say."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from steelyard.studies.option_types import Flag


class Options(BaseModel):
    """Every field has a default; a run is repeated from what is asked for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    study: Literal["first-start"] = "first-start"
    seed: int = Field(default=1, ge=0)
    quick: bool = False
    commands: Annotated[tuple[str, ...], Flag(names=("start",), has_commas=True)] = Field(
        default=("true", "sh -c :"),
        min_length=1,
        description="A command to start; may be given several times.",
    )
    blocks: int | None = Field(default=None, ge=5, le=1000)
    starts: int = Field(default=5, ge=2, le=100)
    margin_percent: float = Field(default=10.0, gt=0, lt=100)
    out: str | None = Field(default=None, min_length=1)


OPTIONS = Options


def settle(asked: Options) -> Options:
    """Fill in what depends on `quick`."""
    return asked.model_copy(update={"blocks": asked.blocks or (8 if asked.quick else 40)})
