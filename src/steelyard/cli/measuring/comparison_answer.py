"""What ``steelyard compare`` and ``bench`` say in the end: text, files, the exit code."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - cyclopts reads it
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.cli.fail_on import Answer
from steelyard.errors import RunError, SteelyardError, UsageError
from steelyard.interruption import INTERRUPTED
from steelyard.report.shown_text import inert
from steelyard.studies.comparison.export import Form, export, to_json
from steelyard.studies.comparison.text import render
from steelyard.studies.comparison.verdict_table import render_suite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.cli.fail_on import FailOn
    from steelyard.studies.comparison.outcome import Comparison

_Repeated = Parameter(show_default=False)


@Parameter(name="*")
@dataclass(frozen=True)
class KeepOptions:
    """What is kept and shown.

    Parameters
    ----------
    out
        Result folder; `steelyard-results/compare-DATE-N` by default.
    no_record
        Keep nothing on disk.
    export
        `json FILE` (everything), `csv FILE` (one row per run), `md FILE` (verdicts and table), or for a
        pipeline `pull-request FILE`, `annotations FILE`, `junit FILE`, `action-benchmark FILE`,
        `bencher FILE`, or `links FILE` for `steelyard history`; may be given several times.
    report
        Write `report.html` and figures into the result folder.
    as_json
        Print JSON instead of text.
    ci
        In a job of GitHub or GitLab: annotate, add the verdicts to the job's summary, and renew the comment
        on the pull or merge request. Files for other steps are in `steelyard-results/gate`.
    """

    out: Path | None = None
    no_record: bool = False
    export: Annotated[tuple[tuple[Form, Path], ...], _Repeated] = ()
    report: bool = False
    as_json: Annotated[bool, Parameter(name="--json")] = False
    ci: Annotated[bool, Parameter(negative="")] = False


KEEP: Final = KeepOptions()


@contextlib.contextmanager
def told_in_ci(keep: KeepOptions) -> Iterator[None]:
    """Let a comment not stand that belongs to revisions of before."""
    try:
        yield
    except SteelyardError as error:
        if keep.ci:
            from steelyard.cli.measuring.pipeline import publish_failure  # noqa: PLC0415 - start-up time

            publish_failure(error)
        raise


def exit_code_of(found: Comparison, fail_on: Sequence[FailOn]) -> int:
    """Give the exit code of an answer."""
    if found.end == "interrupted":
        return INTERRUPTED
    return _answer(found).exit_code(fail_on) or (RunError.exit_code if found.has_failure else 0)


def _answer(found: Comparison) -> Answer:
    return Answer(
        is_slower=found.has_regression,
        is_changed=found.best is None
        and (found.has_regression or any(claim.is_improvement for claim in found.claims)),
        is_undecided=bool(found.open_claims),
    )


def require_folders(exports: Sequence[tuple[Form, Path]]) -> None:
    """Refuse to measure for a minute what cannot be written then."""
    for form, path in exports:
        if not path.absolute().parent.is_dir() or path.is_dir():
            message = f"`--export {form} {path}`: cannot write this file"
            raise UsageError(message, hint="give a file in an existing folder")


def publish_comparison(found: Comparison, keep: KeepOptions) -> None:
    """Write files and text."""
    for form, path in keep.export:
        export(found, form, path)
    is_suite = found.contenders[0].side and len(found.claims) > 1
    text = render_suite(found) if is_suite else render(found)
    sys.stdout.write(to_json(found).replace("##[", "##\\u005b") if keep.as_json else inert(text))
    if keep.ci:
        from steelyard.cli.measuring.pipeline import publish  # noqa: PLC0415 - start-up time

        publish(found)
    if keep.report and found.result is not None:
        from steelyard.studies.comparison.report.page import write_report  # noqa: PLC0415 - start-up time

        path = write_report(found.result)
        (sys.stderr if keep.as_json else sys.stdout).write(f"report {path}\n")
