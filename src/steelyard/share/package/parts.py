"""All files of a package, made from the result and from what is said of it: to pack it, and to check it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.provenance import read_provenance
from steelyard.share.complete_result import result_files
from steelyard.share.package.archive import part_of_file, part_of_text
from steelyard.share.package.checksums import MANIFEST_NAME, manifest_text
from steelyard.share.package.crate import CRATE_NAME, PREVIEW_NAME, RESULT, Story, crate_of
from steelyard.share.package.environment_manifest import ENVIRONMENT_NAME, environment
from steelyard.share.package.readme import LICENCE_NAME, README_NAME, preview, readme
from steelyard.share.package.recipe import (
    INSTALLER_NAME,
    RECIPE_NAME,
    REQUIREMENTS_NAME,
    WHEELS,
    locked,
    recipe,
)
from steelyard.share.package.statement import STATEMENT_NAME
from steelyard.share.package.texts import (
    CITATION_NAME,
    DEVICES_NAME,
    STUDY_FILE_NAME,
    citation,
    devices_file,
    licence,
    request_of,
    study_file,
)
from steelyard.share.package.workload_sources import workload_sources
from steelyard.study import installed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance
    from steelyard.share.package.archive import Part
    from steelyard.share.package.statement import Statement

_NOT_DATED: Final = "1970-01-01"


def package_parts(result: Path, statement: Statement, wheel: Path | None = None) -> Iterator[Part]:
    """Give all files of the package of a result.

    Parameters
    ----------
    result : Path
        Complete result folder.
    statement : Statement
        What is said of it, by its author and by who packs it.
    wheel : Path or None
        Wheel that the package carries.

    Raises
    ------
    DataError
        If the result cannot be read.
    """
    parts = list(result_parts(result, statement))
    if wheel is not None and statement.wheel is not None:
        parts.append(part_of_file(f"{WHEELS}{statement.wheel['name']}", wheel))
    yield from parts
    yield from describing_parts(result, statement, parts)


def result_parts(result: Path, statement: Statement) -> Iterator[Part]:
    """Give the files of a package that do not depend on others in it: the result, and texts made from it."""
    plan, provenance = read_plan(result / "plan.json"), read_provenance(result)
    story = _story(plan, provenance, statement)
    yield from (part_of_file(f"{RESULT}{name}", result / name) for name in result_files(result))
    yield from (part_of_text(name, text) for name, text in _texts(result, story, statement))
    yield from (part_of_file(name, path) for name, path in workload_sources(plan).items())
    findings = read_findings(result / "findings.json")
    yield part_of_text(README_NAME, readme(story, findings, statement))


def describing_parts(result: Path, statement: Statement, parts: Sequence[Part]) -> Iterator[Part]:
    """Give the files of a package that tell of all others: its crate, the preview, and the manifest."""
    plan, provenance = read_plan(result / "plan.json"), read_provenance(result)
    story, findings = _story(plan, provenance, statement), read_findings(result / "findings.json")
    told = sorted(parts, key=lambda part: part.name)
    crate = part_of_text(CRATE_NAME, crate_of(story, told))
    told = [*told, crate, part_of_text(PREVIEW_NAME, preview(story, findings, [*told, crate]))]
    yield from told[-2:]
    yield part_of_text(MANIFEST_NAME, manifest_text({part.name: part.sha256 for part in told}))


def _story(plan: Plan, provenance: Provenance, statement: Statement) -> Story:
    about = statement.said()
    question = installed(plan.study).question
    ended = [session.ended_utc or session.begun_utc for session in provenance.own_sessions]
    published = about.date or (ended[-1][:10] if ended else _NOT_DATED)
    machine = provenance.host.get("cpu_model")
    recorded = f" Recorded on {machine}." if machine else ""
    title = about.title or f"Result of the study {plan.study}: {question}"
    description = about.description or (
        f"A complete result of Steelyard's study {plan.study}: plan, raw data, findings and report.{recorded}"
    )
    return Story(about, plan, provenance, question, title, description, published)


def _texts(result: Path, story: Story, statement: Statement) -> Iterator[tuple[str, str]]:
    yield STATEMENT_NAME, statement.text()
    yield CITATION_NAME, citation(story)
    yield LICENCE_NAME, licence(story.about, _text_of_study(story.plan, "licences"))
    yield ENVIRONMENT_NAME, environment(result, story.plan, story.provenance, statement.licences)
    yield RECIPE_NAME, recipe(story.plan, story.provenance, statement)
    yield from ((name, locked(name)) for name in (INSTALLER_NAME, REQUIREMENTS_NAME))
    for name, made in ((STUDY_FILE_NAME, study_file), (DEVICES_NAME, devices_file)):
        text = made(story.plan)
        if text is not None:
            yield name, text


def _text_of_study(plan: Plan, key: str) -> str | None:
    text = (request_of(plan) or {}).get(key)
    return text if isinstance(text, str) and text else None
