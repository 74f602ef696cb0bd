"""What a job knows of two revisions, small enough for a note in Git: the links of a history of revisions.

Version history of ``steelyard/links/1``:

1. Ratio of each benchmark, with the standard error of its logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from steelyard.analyse.comparison.sequential import Location
from steelyard.analyse.series.chain import FEWEST_BLOCKS, Link, link_of
from steelyard.errors import AnalysisError, DataError
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.clock import now_utc
from steelyard.record.provenance import read_provenance
from steelyard.report.shown_text import AS_ONE_LINE, ELLIPSIS
from steelyard.studies.comparison.replay import differences_of, replay, values_by_block
from steelyard.studies.comparison.terms import STUDY
from steelyard.studies.comparison.verdict_files import public_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from steelyard.studies.comparison.outcome import Comparison

SCHEMA: Final = "steelyard/links/1"
_FEWEST_EQUAL: Final = 9.0
"""Degrees of freedom from which on blocks that are all equal are no chance."""
MOST_BYTES: Final = 10_000_000
_CLOSED: Final = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]
_LONGEST_NAME: Final = 500
_Text = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]


class Revision(BaseModel):
    """A revision by its commit and its files: two commits of the same files are one place in a history."""

    model_config = _CLOSED

    commit: _Hash
    tree: _Hash
    name: _Text
    committed_s: int = 0

    @property
    def short(self) -> str:
        """Beginning of the commit, for people."""
        return self.commit[:9]


class BenchmarkLink(BaseModel):
    """A benchmark's ratio of contender over baseline."""

    model_config = _CLOSED

    benchmark: _Text
    log_ratio: Annotated[float, Field(ge=-10, le=10)]
    standard_error: Annotated[float, Field(ge=0, le=50)]
    freedom: Annotated[float, Field(ge=1, le=1e9)]
    within: Annotated[str, Field(pattern="^(median|min|slope)?$")] = ""


class Links(BaseModel):
    """What one job knows of one revision against another."""

    model_config = _CLOSED

    schema_: Literal["steelyard/links/1"] = Field(alias="schema")
    at: _Text
    metric: _Text
    is_mean: bool = False
    host: Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")] = ""
    baseline: Revision
    contender: Revision
    benchmarks: Annotated[tuple[BenchmarkLink, ...], Field(max_length=10_000)]

    @field_validator("at")
    @classmethod
    def _a_time(cls, value: str) -> str:
        datetime.fromisoformat(value)
        return value

    def as_line(self) -> str:
        """Write it on one line of JSON."""
        return self.model_dump_json(by_alias=True, exclude_defaults=True) + "\n"


def name_of(text: str) -> str:
    """Give the name by which a history knows a benchmark: a line, of which a hash tells those that are long.

    Examples
    --------
    >>> name_of("sort" + chr(10) + "words")
    'sort words'
    >>> len(name_of("x" * 1000))
    500
    """
    line = public_text(text).translate(AS_ONE_LINE)
    if len(line) <= _LONGEST_NAME:
        return line
    end = f"{ELLIPSIS}{sha256(line.encode()).hexdigest()[:12]}"
    return line[: _LONGEST_NAME - len(end)] + end


def links_of(found: Comparison, host: str = "", at: str | None = None) -> tuple[Links, ...]:
    """Give what a comparison of revisions knows: one entry for each contender revision.

    Parameters
    ----------
    found : Comparison
        What was found.
    host : str
        Model of its processor.
    at : str or None
        When it began; now, unless given.

    Raises
    ------
    AnalysisError
        If it compared something else than revisions.
    """
    sides = {str(build["name"]): build for build in found.builds}
    if not sides or any(contender.side not in sides for contender in found.contenders):
        message = "only a comparison of revisions links them, and this one compared commands"
        raise AnalysisError(message, hint="steelyard compare --rev main --rev HEAD -- ./program")
    values = values_by_block(found.runs, found.terms)
    is_mean = found.terms.statistics == (Location.MEAN,)
    numbers = {contender.name: contender for contender in found.contenders}
    entries: dict[tuple[str, str], list[BenchmarkLink]] = {}
    # Of quantiles there are several claims about a pair.
    for baseline, contender in dict.fromkeys((claim.baseline, claim.contender) for claim in found.claims):
        first, second = numbers[baseline], numbers[contender]
        of_pair = entries.setdefault((first.side, second.side), [])
        differences = np.array(differences_of((first.number, second.number), values))
        link = link_of(0, 1, differences, is_mean=is_mean)
        if link is not None:
            of_pair.append(
                BenchmarkLink(
                    benchmark=name_of(second.benchmark or second.name),
                    log_ratio=link.log_ratio,
                    standard_error=link.standard_error,
                    freedom=link.freedom,
                    within=found.terms.within.get(second.benchmark, ""),
                )
            )
    return tuple(
        Links(
            schema=SCHEMA,
            at=at or now_utc(),
            metric=str(found.terms.metric),
            is_mean=is_mean,
            host=host,
            baseline=_revision(sides[first]),
            contender=_revision(sides[second]),
            benchmarks=tuple(links),
        )
        for (first, second), links in entries.items()
    )


def _revision(build: dict[str, object]) -> Revision:
    kept = {name: build[name] for name in ("commit", "tree", "committed_s")}
    return Revision.model_validate({**kept, "name": name_of(str(build["name"]))})


def compares_revisions(result: Path) -> bool:
    """Whether a result folder is a comparison of revisions."""
    provenance = read_provenance(result)
    return provenance.study == STUDY and bool(provenance.builds)


def read_links(path: Path) -> list[Links]:
    """Read the links of a result folder, or of a file of links, one on each line.

    Raises
    ------
    DataError
        If the folder or the file is absent or damaged; of a file, the line is named.
    AnalysisError
        If the folder is no comparison of revisions.
    """
    if path.is_dir():
        provenance = read_provenance(path)
        found = replay(path, read_plan(path / PLAN_NAME))
        host = str(provenance.host.get("cpu_model", ""))
        return list(links_of(found, host, provenance.sessions[0].begun_utc))
    try:
        if path.stat().st_size > MOST_BYTES:
            message = f"cannot read `{path}`: it has more than {MOST_BYTES} bytes"
            raise DataError(message, hint="give fewer links, or result folders")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no text"
        message = f"cannot read `{path}`: {said}"
        raise DataError(message, hint="give result folders, or files of `--export links`") from error
    links = list(parse_links(text, str(path)))
    if not links:
        message = f"cannot read `{path}`: it contains no links of revisions"
        raise DataError(message, hint="give result folders, or files of `--export links`")
    return links


def parse_links(text: str, where: str, repair: str = "restore it") -> Iterator[Links]:
    """Read links, one on each line; empty lines are skipped.

    Parameters
    ----------
    text : str
        The lines.
    where : str
        What contains them.
    repair : str
        What to do about a line that is none.

    Raises
    ------
    DataError
        Naming the line that is none.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield Links.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            message = (
                f"cannot read line {number} of `{where}`: {f'`{place}`: ' if place else ''}{first['msg']}"
            )
            raise DataError(message, hint=f"each line is a document of schema {SCHEMA}: {repair}") from error


def each_once(jobs: Sequence[Links]) -> list[Links]:
    """Give every job once: one that went on has written down again what it knew before."""
    found: dict[tuple[object, ...], Links] = {}
    for job in jobs:
        key = (job.at, job.host, job.metric, job.is_mean, job.baseline.commit, job.contender.commit)
        found[key] = max(
            found.get(key, job), job, key=lambda each: sum(one.freedom for one in each.benchmarks)
        )
    return list(found.values())


@dataclass(frozen=True, slots=True)
class RevisionSeries:
    """One benchmark over the revisions of a history.

    Parameters
    ----------
    benchmark, metric : str
        What was measured.
    is_mean : bool
        Whether the geometric mean was compared, else what is typical.
    within : str
        Of what a process of a harness measures its time is; empty for the mean.
    revisions : tuple of Revision
        Those that were, in the order of time.
    links : tuple of Link
        Between their numbers.
    """

    benchmark: str
    metric: str
    is_mean: bool
    within: str
    revisions: tuple[Revision, ...]
    links: tuple[Link, ...]


def series_of(jobs: Sequence[Links], places: Mapping[str, int] | None = None) -> list[RevisionSeries]:
    """Give the series of some jobs.

    Two commits of the same files are one revision. Ratios of different statistics are different series: a
    mean that grew says nothing of a median.

    Parameters
    ----------
    jobs : sequence of Links
        Oldest first.
    places : mapping or None
        Place of each tree in the order of time; by the times of the commits unless given.
    """
    order = _ordered(jobs, places)
    found: dict[tuple[str, str, bool, str], list[tuple[str, str, BenchmarkLink]]] = {}
    for job in jobs:
        if job.baseline.tree == job.contender.tree:
            continue
        for each in job.benchmarks:
            if each.freedom < (FEWEST_BLOCKS - 1 if each.standard_error else _FEWEST_EQUAL):
                continue
            key = (each.benchmark, job.metric, job.is_mean, each.within)
            found.setdefault(key, []).append((job.baseline.tree, job.contender.tree, each))
    series = []
    for key, entries in found.items():
        seen = {tree for first, second, _ in entries for tree in (first, second)}
        revisions = [revision for tree, revision in order.items() if tree in seen]
        numbers = {revision.tree: place for place, revision in enumerate(revisions)}
        links = tuple(
            Link(numbers[first], numbers[second], each.log_ratio, each.standard_error, each.freedom)
            for first, second, each in entries
        )
        series.append(RevisionSeries(*key, tuple(revisions), links))
    return series


def _ordered(jobs: Sequence[Links], places: Mapping[str, int] | None) -> dict[str, Revision]:
    """Give revisions by tree, in the order of time, then in which jobs saw them."""
    seen: dict[str, Revision] = {}
    for job in jobs:
        for revision in (job.baseline, job.contender):
            # What was taken back is as new as the commit that did so.
            seen[revision.tree] = max(
                seen.get(revision.tree, revision), revision, key=lambda each: each.committed_s
            )
    key = (lambda each: places[each.tree]) if places else (lambda each: each.committed_s)
    return {each.tree: each for each in sorted(seen.values(), key=key)}
