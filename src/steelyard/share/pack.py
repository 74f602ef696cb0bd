"""``steelyard pack``: a result folder becomes one archive that others can verify and execute again."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.model.finding import read_findings
from steelyard.share.about import About
from steelyard.share.archive import UNWATCHED, part_of_file, part_of_text, write_archive
from steelyard.share.checksums import MANIFEST_NAME, manifest_text
from steelyard.share.complete_result import LEFT_OUT, left_alone, require_complete, result_files
from steelyard.share.crate import CRATE_NAME, PREVIEW_NAME, RESULT, Story, crate_of
from steelyard.share.package_readme import LICENCE_NAME, README_NAME, preview, readme
from steelyard.share.package_texts import (
    CITATION_NAME,
    STUDY_FILE_NAME,
    citation,
    licence,
    request_of,
    study_file,
)
from steelyard.share.private_names import private_names
from steelyard.share.surroundings_manifest import ENVIRONMENT_NAME, RECIPE_NAME, environment, recipe
from steelyard.share.verify import verify
from steelyard.share.workload_sources import workload_sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.model import FindingSet, Plan
    from steelyard.record.provenance import Provenance
    from steelyard.share.archive import Part, Watcher

_NOT_DATED: Final = "1970-01-01"


@dataclass(frozen=True, slots=True)
class Packing:
    """How a result is packed.

    Parameters
    ----------
    about : About
        What people say of it.
    is_checked : bool
        Whether every finding is computed again first.
    is_anonymous : bool
        Whether a package is refused that names its user.
    """

    about: About = field(default_factory=About)
    is_checked: bool = True
    is_anonymous: bool = False


@dataclass(frozen=True, slots=True)
class Packed:
    """What was packed.

    Parameters
    ----------
    files : int
        How many.
    byte_count : int
        Their size.
    left_out : dict
        What of the result folder is not in the package, and why.
    private : dict
        Names of this user that the package holds, with the files that hold them.
    """

    files: int
    byte_count: int
    left_out: dict[str, str]
    private: dict[str, tuple[str, ...]]


def pack(result: Path, package: Path, packing: Packing | None = None, watcher: Watcher = UNWATCHED) -> Packed:
    """Pack a result folder.

    Parameters
    ----------
    result : Path
        Complete result folder. It is not changed.
    package : Path
        Archive to write; it must not exist.
    packing : Packing or None
        How; nothing is said of it by default, and every finding is computed again.
    watcher : Watcher
        Told how far it is.

    Raises
    ------
    DataError
        If the folder is not a complete result, its findings do not follow from its raw data, it names its
        user and must not, or the archive cannot be written. Nothing is left then.
    UsageError
        If the archive exists already.
    """
    how = packing or Packing()
    with left_alone(result):
        plan, provenance = require_complete(result)
        if how.is_checked:
            _require_confirmed(result)
        left_out = {name: why for name, why in LEFT_OUT.items() if (result / name).exists()}
        parts = list(_parts(result, _story(plan, provenance, how.about), left_out, is_checked=how.is_checked))
        private = private_names(parts)
        if how.is_anonymous and private:
            raise _named(result, private)
        write_archive(package, parts, watcher)
    return Packed(len(parts), sum(part.byte_count for part in parts), left_out, private)


def _require_confirmed(result: Path) -> None:
    problems = verify(result)
    if problems:
        shown = "\n".join(f"  {problem}" for problem in problems[:5])
        message = f"`{result}` is not packed: its findings are not what its raw data give\n{shown}"
        hint = f"`steelyard verify {result}` lists everything; `--unchecked` packs it as it is"
        raise DataError(message, hint=hint, code="data.unconfirmed")


def _named(result: Path, private: dict[str, tuple[str, ...]]) -> DataError:
    shown = "; ".join(f"`{name}` in {', '.join(files[:3])}" for name, files in private.items())
    message = f"`{result}` is not packed: it names its user or host: {shown}"
    hint = (
        "paths are part of what was executed and cannot be taken out: execute the study as a user and in a "
        "folder whose names say nothing, or leave out `--anonymous`"
    )
    return DataError(message, hint=hint, code="data.private")


def _story(plan: Plan, provenance: Provenance, about: About) -> Story:
    question = question_of(plan.study)
    ended = [session.ended_utc or session.begun_utc for session in provenance.sessions]
    published = about.date or (ended[-1][:10] if ended else _NOT_DATED)
    machine = provenance.host.get("cpu_model")
    recorded = f" Recorded on {machine}." if machine else ""
    title = about.title or f"Result of the study {plan.study}: {question}"
    description = about.description or (
        f"A complete result of Steelyard's study {plan.study}: plan, raw data, findings and report.{recorded}"
    )
    return Story(about, plan, provenance, question, title, description, published)


def question_of(study: str) -> str:
    """Give what a study answers; of one that is not installed here only its name."""
    for group in ("steelyard.studies", "steelyard.analyses"):
        for entry in entry_points(group=group, name=study):
            return str(getattr(entry.load(), "question", study))
    return study


def _parts(result: Path, story: Story, left_out: dict[str, str], *, is_checked: bool) -> Iterator[Part]:
    findings = read_findings(result / "findings.json")
    parts = [part_of_file(f"{RESULT}{name}", result / name) for name in result_files(result)]
    parts += [part_of_text(name, text) for name, text in _texts(result, story)]
    parts += [part_of_file(f"workloads/{name}", path) for name, path in workload_sources(story.plan).items()]
    parts.append(part_of_text(README_NAME, readme(story, findings, left_out, is_checked=is_checked)))
    yield from _described(sorted(parts, key=lambda part: part.name), story, findings)


def _described(parts: Sequence[Part], story: Story, findings: FindingSet) -> Iterator[Part]:
    """Give the parts with those that tell of all others."""
    crate = part_of_text(CRATE_NAME, crate_of(story, parts))
    told = [*parts, crate, part_of_text(PREVIEW_NAME, preview(story, findings, [*parts, crate]))]
    yield from told
    yield part_of_text(MANIFEST_NAME, manifest_text({part.name: part.sha256 for part in told}))


def _texts(result: Path, story: Story) -> Iterator[tuple[str, str]]:
    yield CITATION_NAME, citation(story)
    yield LICENCE_NAME, licence(story.about, _text_of_study(story.plan, "licences"))
    yield ENVIRONMENT_NAME, environment(result, story.plan, story.provenance)
    yield RECIPE_NAME, recipe(story.plan, story.provenance)
    request = study_file(story.plan)
    if request is not None:
        yield STUDY_FILE_NAME, request


def _text_of_study(plan: Plan, key: str) -> str | None:
    text = (request_of(plan) or {}).get(key)
    return text if isinstance(text, str) and text else None
