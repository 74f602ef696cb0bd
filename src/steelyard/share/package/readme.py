"""What people read first in a package: ``README.md`` and the preview of its crate."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from steelyard.share.package.crate import RESULT, id_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import FindingSet
    from steelyard.share.package.archive import Part
    from steelyard.share.package.crate import Story
    from steelyard.share.package.statement import Statement

LICENCE_NAME: Final = "LICENCE.md"
README_NAME: Final = "README.md"
_SHOWN_VERDICTS: Final = 30


def verdict_counts(findings: FindingSet) -> dict[str, int]:
    """Count what is said of the result by verdict, the most frequent first; descriptive ones are left out."""
    counts: dict[str, int] = {}
    for finding in findings.own():
        if finding.verdict != "descriptive":
            counts[finding.verdict] = counts.get(finding.verdict, 0) + 1
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return dict(ranked[:_SHOWN_VERDICTS])


def readme(story: Story, findings: FindingSet, statement: Statement) -> str:
    """Write ``README.md`` with the checklist of the ACM's badges.

    Parameters
    ----------
    story : Story
        What the package is about.
    findings : FindingSet
        Of the result.
    statement : Statement
        What only its author, or who packed it, can say.

    References
    ----------
    .. [1] ACM, Artifact Review and Badging, version 1.1 (24 August 2020).
    """
    verdicts = ", ".join(f"{name} {count}" for name, count in verdict_counts(findings).items()) or "none"
    authors = ", ".join(author.shown for author in story.about.authors) or "not named"
    checked = (
        "every finding was computed again from the raw data when this was packed"
        if statement.is_checked
        else "the findings were not computed again when this was packed"
    )
    licence = story.about.licence or f"see `{LICENCE_NAME}`"
    step = "state a licence first" if story.about.licence is None else "its licence is stated"
    lines = [
        f"# {_line(story.title)}",
        "",
        story.description,
        "",
        f"Question: {story.question}",
        "",
        f"Authors: {_line(authors)}. Date: {story.published}. Licence: {licence}.",
        "",
        f"Findings: {len(findings.own())}; verdicts: {verdicts}.{_of_source(findings)}",
        "",
        "## What to do with it",
        "",
        "    steelyard verify PACKAGE    hashes, and every finding computed again from the raw data",
        "    steelyard rerun PACKAGE     the same study on your machine; shows what it would run",
        "    steelyard compare-results PACKAGE YOURS --margin 5%",
        "",
        "PACKAGE is the archive, or the folder it was unpacked into. Running it again runs foreign",
        "commands: do it on a machine, in a container or in a virtual machine that holds nothing of value.",
        "",
        "## What is in it",
        "",
        "| file | what |",
        "|---|---|",
        *(f"| `{name}` | {what} |" for name, what in _CONTENT.items()),
        "",
        "Left out: "
        + ("; ".join(f"`{name}` ({why})" for name, why in statement.left_out.items()) or "nothing")
        + ".",
        "",
        "## Badges of the ACM, version 1.1",
        "",
        "- [x] Artifacts evaluated, documented: this file, the report, `ro-crate-metadata.json`",
        "- [x] consistent: `manifest-sha256.txt` lists every file",
        "- [x] complete: plan, workload sources or recipe, environment, raw data, findings",
        f"- [{'x' if statement.is_checked else ' '}] exercisable: {checked}",
        f"- [ ] Artifacts available: publish it in an archive that gives it a DOI; {step}",
        "- [ ] Results reproduced: another team gets the findings with this package (`steelyard rerun`)",
        "- [ ] Results replicated: another team gets the findings without it",
        "",
    ]
    if story.about.lessons:
        lines += ["## Lessons", "", story.about.lessons, ""]
    return "\n".join(lines)


_CONTENT: Final = {
    f"{RESULT}plan.json": "what was run, in which order, by which commands",
    f"{RESULT}": "raw data, provenance, findings, tables, figures, `report.html`",
    "study.toml": "the study file that asks for the same, where the plan keeps a request",
    "devices.toml": "devices of the study: hosts, limits, storages, where a file named them",
    "workloads/": "sources of the workloads that the commands name",
    "scripts/": "what builds them, where a study needs more than its own compiler",
    "Containerfile": "recipe of a container with the programs that are needed, each by its hash",
    "installer.txt": "uv, which brings the interpreter and the packages into the container",
    "requirements.txt": "Python packages of the container, by their hashes",
    "wheels/": "Steelyard for the container, where the package carries it",
    "environment.json": "devices, storage, images, isolation, roles, settings, versions, licences",
    "about.json": "what only its authors, or who packed it, can say: nothing checks it",
    "CITATION.cff": "how to cite it",
    LICENCE_NAME: "licence and notes on licences",
    "ro-crate-metadata.json": "the same for machines (RO-Crate 1.1, Process Run Crate 0.5)",
    "manifest-sha256.txt": "hash of every file; `sha256sum -c manifest-sha256.txt`",
}


def _of_source(findings: FindingSet) -> str:
    count = len(findings.findings) - len(findings.own())
    return (
        f" Beside them, {count} about what the source of the study printed, not counted here."
        if count
        else ""
    )


def _line(text: str) -> str:
    return " ".join(text.split())


def preview(story: Story, findings: FindingSet, parts: Sequence[Part]) -> str:
    """Write ``ro-crate-preview.html``: small, without any script, every foreign text escaped."""
    authors = ", ".join(author.shown for author in story.about.authors) or "not named"
    facts = {
        "Question": story.question,
        "Study": story.plan.study,
        "Date": story.published,
        "Authors": authors,
        "Licence": story.about.licence or "see LICENCE.md",
        "Plan": story.plan.id,
        "Machine": str(story.provenance.host.get("cpu_model", "not recorded")),
        "Verdicts": ", ".join(f"{name} {count}" for name, count in verdict_counts(findings).items())
        or "none",
    }
    rows = "".join(f"<tr><th>{escape(name)}<td>{escape(value)}" for name, value in facts.items())
    files = "".join(
        f'<tr><td><a href="{escape(id_of(part.name))}">{escape(part.name)}</a><td>{part.byte_count}'
        for part in sorted(parts, key=lambda each: each.name)
    )
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(story.title)}</title>\n"
        "<style>body{font:16px/1.5 sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem}"
        "td,th{padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}"
        "</style>\n"
        f"<h1>{escape(story.title)}</h1>\n<p>{escape(story.description)}</p>\n"
        f'<p><a href="{RESULT}report.html">The report</a></p>\n<table>{rows}</table>\n'
        f"<h2>Files</h2>\n<table><tr><th>file<th>bytes{files}</table>\n</html>\n"
    )
