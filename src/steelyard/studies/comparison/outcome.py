"""What a comparison found: claims, samples, warnings; and the document that holds all of it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from steelyard.analyse.comparison.duel import best_of
from steelyard.analyse.comparison.equivalence import Verdict
from steelyard.run.shell_syntax import shell_syntax
from steelyard.studies.comparison.claim import Claim, claim_of_look, percent
from steelyard.studies.comparison.contender import SHELL
from steelyard.studies.comparison.modes.choice import Choice, choice_of
from steelyard.studies.comparison.modes.duet import DuetSummary, duet_summary
from steelyard.studies.comparison.modes.layout import LayoutShare, layout_shares
from steelyard.studies.comparison.sample import (
    OUTLIER_MADS,
    Run,
    Summary,
    slow_first_run,
    summarise,
    values_of,
)
from steelyard.studies.comparison.terms import MEASURE
from steelyard.units import NS_PER_S, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from steelyard.analyse.comparison.duel import Duel
    from steelyard.studies.comparison.contender import Contender
    from steelyard.studies.comparison.hosts.merged import Merged
    from steelyard.studies.comparison.terms import Terms

COMPARISON_SCHEMA: Final = "steelyard/comparison/1"
"""Described by docs/reference/comparison.schema.json."""
OF_REVISIONS: Final = "revisions: "
FAILED_BENCHMARK: Final = "failed: "
"""Begins of remarks that are about revisions, and about a benchmark of a suite that failed."""
_DECIDED: Final = frozenset({Verdict.SLOWER, Verdict.EQUIVALENT})
SHORT_NS: Final = 1_000_000
"""Below, what the kernel does to launch a program is a good part of its time."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything a comparison found.

    Parameters
    ----------
    terms : Terms
        How it was measured and what was promised.
    contenders : tuple of Contender
        Commands.
    summaries : tuple of Summary
        Sample of each command, described.
    claims : tuple of Claim
        One per contender against its baseline.
    looks : tuple of tuple
        Blocks and fraction at each look, per claim: with the runs, everything the bounds depend on.
    runs : tuple of Run
        All of them, warm-up included, in order of execution.
    warnings : tuple of str
        Code and text, for people.
    elapsed_s : float
        Time it took [s].
    end : str
        Why it ended: ``settled``, ``spent``, ``interrupted``, or ``failed`` or ``open`` (killed).
    result : Path or None
        Result folder.
    startup_s : float
        Part of the time before the first run [s]; 0 where it is not known any more.
    builds : tuple of dict
        What is recorded of the builds of revisions, where they were compared.
    layouts : tuple of LayoutShare
        Share of layout in the scatter of each pair, where layouts were drawn.
    duet : DuetSummary or None
        How far the runs of a duet overlapped.
    choice : Choice or None
        Why the mode was chosen, where it was.
    hosts : tuple of Merged
        For each claim, what each host says, where it was placed on several.
    """

    terms: Terms
    contenders: tuple[Contender, ...]
    summaries: tuple[Summary, ...]
    claims: tuple[Claim, ...]
    looks: tuple[tuple[tuple[int, float], ...], ...]
    runs: tuple[Run, ...]
    warnings: tuple[str, ...]
    elapsed_s: float
    end: str
    result: Path | None = None
    startup_s: float = 0.0
    builds: tuple[dict[str, Any], ...] = ()
    layouts: tuple[LayoutShare, ...] = ()
    duet: DuetSummary | None = None
    choice: Choice | None = None
    hosts: tuple[Merged, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is known of mode and layout, one sentence each, without a full stop."""
        found = (self.choice, self.duet, *self.layouts)
        return tuple(each.sentence for each in found if each is not None)

    @property
    def has_failure(self) -> bool:
        """Whether a benchmark of a suite failed, and others were measured."""
        return any(warning.startswith(FAILED_BENCHMARK) for warning in self.warnings)

    @property
    def best(self) -> str | None:
        """Name of the likeliest fastest command, where that is asked for: no claim is about it."""
        if not self.terms.is_best:
            return None
        behind = {claim.contender for claim in self.claims}
        return next(contender.name for contender in self.contenders if contender.name not in behind)

    @property
    def best_sentence(self) -> str:
        """The answer to which command is the fastest, without a full stop; empty where nobody asked."""
        if self.best is None:
            return ""
        like = [f"`{claim.contender}`" for claim in self.claims if claim.verdict is Verdict.EQUIVALENT]
        maybe = [f"`{claim.contender}`" for claim in self.open_claims]
        least = "smallest" if self.terms.metric == "memory" else "fastest"
        of, margin = f"{least} of {len(self.contenders)}", percent(self.terms.margin.relative)
        first = f"`{self.best}`"
        if maybe:
            equal = f"; equal to {first} within {margin}: {', '.join(like)}" if like else ""
            return f"undecided which is the {of}: {' or '.join([first, *maybe])}{equal}"
        return f"{of}: {' or '.join([first, *like])}" + (f", equal within {margin}" if like else "")

    @property
    def open_claims(self) -> list[Claim]:
        """Claims that are not settled; of the fastest, those about commands that may be it."""
        if self.terms.is_best:
            return [claim for claim in self.claims if claim.verdict not in _DECIDED]
        return [claim for claim in self.claims if not claim.is_settled]

    @property
    def has_regression(self) -> bool:
        """Whether any contender is slower by more than the margin."""
        return self.best is None and any(claim.is_regression for claim in self.claims)

    def as_dict(self) -> dict[str, Any]:
        """Give JSON values."""
        terms = self.terms
        return {
            "schema": COMPARISON_SCHEMA,
            "verdict": str(self.claims[0].verdict) if len(self.claims) == 1 else None,
            "best": self.best,
            "has_regression": self.has_regression,
            "end": self.end,
            "elapsed_s": self.elapsed_s,
            "startup_s": self.startup_s,
            "claims": [
                claim.as_dict() | {"looks": [list(look) for look in looks]}
                for claim, looks in zip(self.claims, self.looks, strict=True)
            ],
            "commands": [
                {
                    "name": contender.name,
                    "command": contender.text,
                    "words": list(contender.words),
                    "parameters": contender.values,
                    "benchmark": contender.benchmark,
                    "side": contender.side,
                    **_numbers(asdict(summary)),
                }
                for contender, summary in zip(self.contenders, self.summaries, strict=True)
            ],
            "revisions": [
                {name: build[name] for name in ("name", "commit", "tree", "committed_s", "status")}
                for build in self.builds
            ],
            "terms": {
                "metric": str(terms.metric),
                "unit": "bytes" if terms.metric == "memory" else "ns",
                "margin": terms.margin.relative,
                "level": terms.margin.level,
                "location": ",".join(map(str, terms.statistics)),
                "warmup": terms.warmup,
                "runs_min": terms.extent.blocks_min,
                "runs_max": terms.extent.blocks_max,
                "budget_s": terms.extent.budget_s if math.isfinite(terms.extent.budget_s) else None,
                "seed": terms.seed,
                "isolation": terms.isolation,
                "mode": str(terms.mode),
                "layout": terms.layout,
            },
            "mode_choice": None if self.choice is None else _numbers(asdict(self.choice)),
            "duet": None if self.duet is None else asdict(self.duet),
            "layouts": [_numbers(asdict(each)) for each in self.layouts],
            **({"hosts": [each.parts_as_dict() for each in self.hosts]} if self.hosts else {}),
            "warnings": list(self.warnings),
            "runs": [asdict(run) for run in self.runs],
            "result": None if self.result is None else str(self.result),
        }


def _numbers(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


@dataclass(frozen=True, slots=True)
class Measured:
    """What a measuring loop leaves, or what was recorded of one.

    Parameters
    ----------
    terms : Terms
        How it was measured and what is promised.
    contenders : tuple of Contender
        Commands.
    runs : tuple of Run
        In order of execution.
    duels : tuple of Duel
        Comparisons with their looks.
    end : str
        Why it ended.
    elapsed_s : float
        Time it took [s].
    startup_s : float
        Part of it before the first run [s].
    """

    terms: Terms
    contenders: tuple[Contender, ...]
    runs: tuple[Run, ...]
    duels: tuple[Duel, ...]
    end: str
    elapsed_s: float
    startup_s: float = 0.0


def conclude(
    measured: Measured, notes: Sequence[str], result: Path | None, hosts: tuple[Merged, ...] = ()
) -> Comparison:
    """Give what was found; where it was placed on hosts, what is claimed over them."""
    contenders, terms = measured.contenders, measured.terms
    summaries = tuple(
        summarise(*values_of(measured.runs, contender.number, terms.metric.quantity))
        for contender in contenders
    )
    chosen = [(duel, False) for duel in measured.duels]
    if terms.is_best:
        _, chosen = best_of(measured.duels)
    claims = tuple(_claim(measured, duel, is_turned=is_turned) for duel, is_turned in chosen)
    if hosts:
        claims = tuple(each.claim for each in hosts)
    found = Comparison(
        terms=terms,
        contenders=contenders,
        summaries=summaries,
        claims=claims,
        looks=tuple(duel.look_times for duel, _ in chosen),
        runs=measured.runs,
        warnings=(),
        elapsed_s=measured.elapsed_s,
        end=measured.end,
        result=result,
        startup_s=measured.startup_s,
        layouts=layout_shares(terms, contenders, measured.runs, measured.duels),
        duet=duet_summary(terms, measured.runs),
        choice=choice_of(terms.trial, terms.seed) if terms.trial else None,
        hosts=hosts,
    )
    return replace(found, warnings=tuple(_warnings(found, notes)))


def _claim(measured: Measured, duel: Duel, *, is_turned: bool) -> Claim:
    """Give what is claimed about a pair, the second side as the baseline where it is turned."""
    first, second = (measured.contenders[number].name for number in (duel.baseline, duel.contender))
    known = duel.known.turned() if duel.known is not None and is_turned else duel.known
    names = (second, first) if is_turned else (first, second)
    terms = measured.terms
    claim = claim_of_look(known, duel.sequence.design, names, str(terms.metric), duel.stages)
    return replace(claim, within=terms.within.get(measured.contenders[duel.contender].benchmark, ""))


def _warnings(found: Comparison, notes: Sequence[str]) -> Iterable[str]:
    yield from map(labelled, notes)
    for contender in found.contenders:
        sign = None if contender.words[:2] == SHELL else shell_syntax(contender.text, at_words_only=True)
        if sign is not None:
            yield f"shell: `{sign}` in `{contender.text}` is passed on as it stands; `--shell` is for a shell"
    for contender in found.contenders:
        yield from _first_run_remarks(found, contender)
        yield from sample_remarks(found, contender.number)
    for claim in found.claims:
        yield from claim.remarks


def _first_run_remarks(found: Comparison, contender: Contender) -> Iterable[str]:
    """Say where the first run took far longer than the others: caches were cold, or a server was started."""
    slow = slow_first_run(found.runs, contender.number)
    if slow is None:
        return
    first, usual, counts = slow
    took = f"took {format_seconds(first / NS_PER_S)}, the others {format_seconds(usual / NS_PER_S)}"
    if counts:
        advice = f"`--warmup {found.terms.warmup + 1}` leaves it out"
        yield f"first: the first run of `{contender.name}` {took}; it counts; {advice}"
    else:
        advice = "does not count, as warm-up; `--prepare` can make every run a cold one"
        yield f"first: the first run of `{contender.name}` {took}; it {advice}"


def labelled(note: str) -> str:
    """Give a note with what it is about.

    Examples
    --------
    >>> labelled("the clock is `tsc`"), labelled("revisions: both contain the same files")
    ('machine: the clock is `tsc`', 'revisions: both contain the same files')
    """
    return note if note.startswith((OF_REVISIONS, FAILED_BENCHMARK)) else f"machine: {note}"


def sample_remarks(found: Comparison, number: int) -> Iterable[str]:
    """Give what must be known of the runs of a command beside its numbers."""
    contender, summary = found.contenders[number], found.summaries[number]
    if number == 0 and contender.words[:2] == SHELL:
        yield "shell: every run includes the start of `sh`; nothing is subtracted"
    if summary.outliers:
        yield (
            f"outliers: {summary.outliers} of {summary.count} runs of `{contender.name}` lie more than "
            f"{OUTLIER_MADS} median absolute deviations above its median; they are labelled and count"
        )
    missing = sum(
        run.phase == MEASURE and not getattr(run, found.terms.metric.quantity)
        for run in found.runs
        if run.contender == number
    )
    if missing:
        yield (
            f"missing: {missing} runs of `{contender.name}` have no {found.terms.metric.words}, or 0; "
            "no comparison uses their blocks"
        )
    failed = sum(run.contender == number and run.status != "completed" for run in found.runs)
    if failed:
        yield f"failures: {failed} runs of `{contender.name}` failed and count, as asked"
    if found.terms.metric == "wall" and summary.median < SHORT_NS:
        yield (
            f"short: runs of `{contender.name}` take less than 1 ms; much of it is the kernel's work to "
            "start a program"
        )
