"""What a study file says of a benchmark of the user's own: commands per role, readiness, results, limits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from steelyard.errors import StudyFileError

if TYPE_CHECKING:
    from collections.abc import Mapping

CLOSED: Final = ConfigDict(extra="forbid", frozen=True)
PAGE: Final = "docs/guides/macro-benchmark.md"
Word = Annotated[str, Field(min_length=1, max_length=4096)]
Words = tuple[Word, ...]
Limit = Annotated[float, Field(gt=0, le=86_400)]
PLACEHOLDER: Final = re.compile(r"\{([a-z_]+(?:\.[a-z_0-9]+)?)\}")
PER_SECOND: Final = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}


class RoleCommands(BaseModel):
    """What is run at the place of one role before the load.

    Parameters
    ----------
    files : tuple of str
        Files or folders of this host that are copied into the role's folder.
    deploy : tuple of str
        Command that prepares the role and must end with status 0.
    start : tuple of str
        Command that lives as long as the load; it is asked to end by SIGTERM.
    ready_log : str
        Regular expression in what `start` writes that says that the role is ready.
    ready_http : str
        Address that is answered with a status of 200 to 299 once the role is ready, asked from this host.
    limit_s : float
        Within it `deploy` must have ended, and `start` must be ready [s].
    """

    model_config = CLOSED

    files: Words = ()
    deploy: Words = ()
    start: Words = ()
    ready_log: str = ""
    ready_http: str = ""
    limit_s: Limit = 600.0

    @field_validator("ready_log")
    @classmethod
    def _is_expression(cls, text: str) -> str:
        try:
            re.compile(text)
        except re.error as error:
            message = f"`{text}` is not a regular expression: {error}"
            raise ValueError(message) from error
        return text

    @field_validator("ready_http")
    @classmethod
    def _is_http(cls, text: str) -> str:
        if text and not text.startswith("http://"):
            message = f"`{text}` is not an address; allowed: `http://HOST:PORT/PATH`"
            raise ValueError(message)
        return text

    @model_validator(mode="after")
    def _can_be_ready(self) -> RoleCommands:
        if bool(self.start) != bool(self.ready_log or self.ready_http):
            message = "`start` and one of `ready_log` and `ready_http` belong together"
            raise ValueError(message)
        return self


class Results(BaseModel):
    """Where the load command leaves its results, in the folder of the role `driver`.

    Parameters
    ----------
    file : str
        Path below the role's folder.
    format : str
        ``csv`` with a line of names, or ``json``.
    kind : str
        ``requests``: one line or object per request; ``summary``: one for all.
    operation, response, failed, begin : str
        Of requests: names of the columns with the operation, the response time, whether it failed (empty,
        0, false, or a status of HTTP below 400: it did not), and when it was due; empty: there is none.
    response_unit, begin_unit : str
        ``ns``, ``us``, ``ms`` or ``s``.
    throughput_per_s, p90, errors_percent : str
        Of a summary: names of the columns, or keys with dots between them; `p90` is in `response_unit`.
    """

    model_config = CLOSED

    file: Word
    format: Literal["csv", "json"] = "csv"
    kind: Literal["requests", "summary"] = "requests"
    operation: str = "operation"
    response: str = "response_ms"
    response_unit: Literal["ns", "us", "ms", "s"] = "ms"
    failed: str = ""
    begin: str = ""
    begin_unit: Literal["ns", "us", "ms", "s"] = "ms"
    throughput_per_s: str = "throughput_per_s"
    p90: str = ""
    errors_percent: str = ""


class Requirements(BaseModel):
    """What the benchmark must reach; what is absent is not required.

    Parameters
    ----------
    throughput_per_s : float or None
        At least so much [1/s].
    p90_ms : float or None
        The 90th percentile of response times is at most so much [ms].
    errors_percent : float
        At most so many requests fail [%].
    """

    model_config = CLOSED

    throughput_per_s: float | None = Field(default=None, gt=0)
    p90_ms: float | None = Field(default=None, gt=0)
    errors_percent: float = Field(default=1.0, ge=0, le=100)


class OwnBenchmark(BaseModel):
    """A benchmark of the user's own.

    Parameters
    ----------
    command : tuple of str
        The load: run at the place of the role `driver` once all roles are ready; it ends by itself.
    settings : dict
        Environment of every command.
    files : tuple of str
        Files or folders of this host that are copied into the folder of the role `driver`.
    limit_s : float
        Within it `command` must have ended [s].
    roles : dict
        Commands by role, started in this order.
    results : Results
        Where the results are.
    requires : Requirements
        What must be reached.

    Notes
    -----
    Words of commands, of `settings` and of `ready_http` may hold ``{folder}``, ``{storage}``, ``{seed}``,
    ``{rate_per_s}``, ``{seconds}``, ``{warm_up_seconds}``, ``{connections}``, ``{rows}`` and
    ``{address.ROLE}``.
    """

    model_config = CLOSED

    command: Words = ()
    settings: dict[str, str] = Field(default_factory=dict)
    files: Words = ()
    limit_s: Limit = 3600.0
    roles: dict[str, RoleCommands] = Field(default_factory=dict)
    results: Results = Results(file="results.csv")
    requires: Requirements = Requirements()


def read_benchmark(parameters: Mapping[str, Any]) -> OwnBenchmark:
    """Read the description of a benchmark among the parameters of a run.

    Raises
    ------
    StudyFileError
        If a key or a value is wrong; all problems are named, each with its place in the study file.
    """
    known = {key: value for key, value in parameters.items() if key in OwnBenchmark.model_fields}
    try:
        benchmark = OwnBenchmark.model_validate(known)
    except ValidationError as error:
        problems = [
            f"  `own_benchmark.{'.'.join(map(str, one['loc']))}`: {one['msg'].removeprefix('Value error, ')}"
            for one in error.errors()
        ]
        message = "the description of the benchmark is wrong:\n" + "\n".join(problems)
        raise StudyFileError(message, hint=f"the keys are in {PAGE}", code="study-file.benchmark") from error
    if not benchmark.command:
        message = "`own_benchmark.command` is missing: the command that applies the load"
        raise StudyFileError(message, hint=f"the keys are in {PAGE}", code="study-file.benchmark")
    return benchmark


def fill_in(text: str, values: Mapping[str, str]) -> str:
    """Put values in the place of ``{NAME}``; other braces stay.

    Raises
    ------
    StudyFileError
        If a name is not known.

    Examples
    --------
    >>> fill_in("http://{address.web}:80/{{x}}${A}", {"address.web": "10.0.0.2"})
    'http://10.0.0.2:80/{{x}}${A}'
    """

    def value(found: re.Match[str]) -> str:
        if found[1] in values:
            return values[found[1]]
        # Braces of other languages, e.g. `{{x}}` and `${x}`.
        around = text[max(found.start() - 1, 0) : found.start()], text[found.end() : found.end() + 1]
        if around[0] in {"{", "$"} or around[1] == "}":
            return found[0]
        message = f"`{text}` asks for `{{{found[1]}}}`, which is not known; known: {', '.join(values)}"
        raise StudyFileError(message, hint=f"the names are in {PAGE}", code="study-file.benchmark")

    return PLACEHOLDER.sub(value, text)
