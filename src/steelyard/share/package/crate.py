"""The metadata of a package: an RO-Crate 1.1 of the profile Process Run Crate 0.5.

References
----------
.. [1] RO-Crate Metadata Specification 1.1, https://w3id.org/ro/crate/1.1
.. [2] Process Run Crate 0.5, https://w3id.org/ro/wfrun/process/0.5
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance
    from steelyard.share.about import About, Author
    from steelyard.share.package.archive import Part

CRATE_NAME: Final = "ro-crate-metadata.json"
PREVIEW_NAME: Final = "ro-crate-preview.html"
CONTEXT: Final = (
    "https://w3id.org/ro/crate/1.1/context",
    {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"},
)
"""That of RO-Crate 1.1, and one term that it lacks, from the terms of Workflow Run Crate."""

CRATE_PROFILE: Final = "https://w3id.org/ro/crate/1.1"
PROCESS_PROFILE: Final = "https://w3id.org/ro/wfrun/process/0.5"
RESULT: Final = "result/"
"""Folder of the result inside a package."""

Entity = dict[str, Any]

_DERIVED: Final = ("findings.json", "tables/", "models/", "figures/", "report.html", "analysis.json")
_TYPES: Final = {
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".sqlite": "application/vnd.sqlite3",
    ".csv": "text/csv",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".toml": "application/toml",
    ".cff": "application/yaml",
    ".c": "text/x-c",
    ".h": "text/x-c",
    ".py": "text/x-python",
    ".java": "text/x-java",
    ".xml": "application/xml",
}


@dataclass(frozen=True, slots=True)
class Story:
    """What a package is about, put together from its result and from what people say of it.

    Parameters
    ----------
    about : About
        What people say.
    plan : Plan
        Of the result.
    provenance : Provenance
        Of the result.
    question : str
        What the study answers.
    title, description, published : str
        With defaults filled in; the day as ISO 8601.
    """

    about: About
    plan: Plan
    provenance: Provenance
    question: str
    title: str
    description: str
    published: str


def id_of(name: str) -> str:
    """Give the id of a file in the crate: its path, as it stands in an address."""
    return quote(name, safe="/")


def crate_of(story: Story, parts: Sequence[Part]) -> str:
    """Write ``ro-crate-metadata.json``.

    Parameters
    ----------
    story : Story
        What the package is about.
    parts : sequence of Part
        All its files but this one, the preview and the manifest.
    """
    names = [part.name for part in parts]
    graph = [
        {
            "@id": CRATE_NAME,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": CRATE_PROFILE},
        },
        _root(story, names),
        {
            "@id": PREVIEW_NAME,
            "@type": "CreativeWork",
            "name": "What is in this package",
            "about": {"@id": "./"},
            "encodingFormat": "text/html",
        },
        {"@id": PROCESS_PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        *_folders(names),
        *(_file(part) for part in parts),
        *_actions(story, names),
        *_contexts(story),
    ]
    compact = [_compacted(entity) for entity in graph]
    text = json.dumps({"@context": list(CONTEXT), "@graph": compact}, indent=1, ensure_ascii=False)
    return text + "\n"


def _compacted(entity: Entity) -> Entity:
    """Write a list of one as that one, and nothing for an empty list, as the specification recommends."""
    found = {}
    for name, value in entity.items():
        if value != []:
            found[name] = value[0] if isinstance(value, list) and len(value) == 1 else value
    return found


def _root(story: Story, names: Sequence[str]) -> Entity:
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": story.title,
        "description": story.description,
        "datePublished": story.published,
        "license": {"@id": licence_id(story.about)},
        "author": [{"@id": author_id(at, author)} for at, author in enumerate(_authors(story.about))],
        "keywords": ", ".join(keywords(story)),
        "identifier": f"steelyard-plan:{story.plan.id}",
        "conformsTo": {"@id": PROCESS_PROFILE},
        "hasPart": _children("", names),
        "mentions": [{"@id": action["@id"]} for action in _actions(story, names)],
        "about": {"@id": "#question"},
    }


def keywords(story: Story) -> list[str]:
    """Give the words under which a package is found."""
    return list(dict.fromkeys((*story.about.keywords, "performance", "experiment", story.plan.study)))


def licence_id(about: About) -> str:
    """Give the id of the licence in the crate."""
    return "LICENCE.md" if about.licence is None else f"https://spdx.org/licenses/{about.licence}"


def author_id(position: int, author: Author | None) -> str:
    """Give the id of an author in the crate."""
    return author.orcid if author is not None and author.orcid else f"#author-{position + 1}"


def _authors(about: About) -> tuple[Author | None, ...]:
    return about.authors or (None,)


def _children(folder: str, names: Iterable[str]) -> list[Entity]:
    """Give references to what stands directly in a folder."""
    direct = dict.fromkeys(
        folder + rest.partition("/")[0] + ("/" if "/" in rest else "")
        for name in names
        if name.startswith(folder) and (rest := name[len(folder) :])
    )
    return [{"@id": id_of(name)} for name in direct]


def _folders(names: Sequence[str]) -> list[Entity]:
    folders = {f"{folder}/" for name in names for folder in PurePosixPath(name).parents if folder.name}
    return [
        {
            "@id": id_of(folder),
            "@type": "Dataset",
            "name": folder,
            "description": f"Files of `{folder}`",
            "hasPart": _children(folder, names),
        }
        for folder in sorted(folders)
    ]


def _file(part: Part) -> Entity:
    suffix = PurePosixPath(part.name).suffix
    return {
        "@id": id_of(part.name),
        "@type": "File",
        "name": part.name,
        "contentSize": str(part.byte_count),
        "encodingFormat": _TYPES.get(suffix, "application/octet-stream"),
        "sha256": part.sha256,
    }


def _actions(story: Story, names: Sequence[str]) -> list[Entity]:
    """Give who made what from what, with which program: the execution (or import) and the analysis."""
    result = [name for name in names if name.startswith(RESULT)]
    derived = [name for name in result if name.removeprefix(RESULT).startswith(_DERIVED)]
    raw = [name for name in result if name not in derived and name != f"{RESULT}plan.json"]
    inputs = [name for name in names if not name.startswith(RESULT) and name not in _NOT_INPUTS]
    return [_execution(story, [f"{RESULT}plan.json", *inputs], raw), _analysis(story, raw, derived)]


_COMPLETED: Final = "http://schema.org/CompletedActionStatus"
_NOT_INPUTS: Final = frozenset(
    (
        "about.json",
        "CITATION.cff",
        "LICENCE.md",
        "README.md",
        "environment.json",
        "installer.txt",
        "requirements.txt",
    )
)


def _execution(story: Story, inputs: Sequence[str], outputs: Sequence[str]) -> Entity:
    sessions, origins = story.provenance.own_sessions, story.provenance.origins
    imported = origins or ((story.provenance.origin,) if story.provenance.origin else ())
    name = f"Run of the study {story.plan.study}"
    objects = [{"@id": id_of(each)} for each in inputs]
    if imported:
        name = "Import of results of another tool"
        objects += [{"@id": f"#origin-{at + 1}"} for at in range(len(imported))]
    action = {
        "@id": "#execution",
        "@type": "CreateAction",
        "name": name,
        "description": "; ".join(" ".join(session.command_line) for session in sessions) or name,
        "instrument": {"@id": "#steelyard"},
        "agent": {"@id": author_id(0, _authors(story.about)[0])},
        "object": objects,
        "result": [{"@id": id_of(each)} for each in outputs],
        "actionStatus": _COMPLETED,
    }
    if sessions:
        action["startTime"] = sessions[0].begun_utc
        action["endTime"] = next(
            (each.ended_utc for each in reversed(sessions) if each.ended_utc), sessions[-1].begun_utc
        )
    return action


_ANALYSIS: Final = (
    "Every finding, table and figure follows from the raw data; `steelyard verify` computes them again. When "
    "they were computed is not recorded: it changes nothing."
)


def _analysis(story: Story, inputs: Sequence[str], outputs: Sequence[str]) -> Entity:
    return {
        "@id": "#analysis",
        "@type": "CreateAction",
        "name": f"Analysis of the study {story.plan.study}",
        "description": _ANALYSIS,
        "instrument": {"@id": "#steelyard"},
        "agent": {"@id": author_id(0, _authors(story.about)[0])},
        "object": [{"@id": id_of(each)} for each in (f"{RESULT}plan.json", *inputs)],
        "result": [{"@id": id_of(each)} for each in outputs],
        "actionStatus": _COMPLETED,
    }


def _contexts(story: Story) -> list[Entity]:
    """Give people, programs, the licence and foreign files that are named and not contained."""
    entities = [
        {
            "@id": "#steelyard",
            "@type": "SoftwareApplication",
            "name": "Steelyard",
            "version": story.provenance.versions.get("steelyard", "unknown"),
            "description": "A laboratory for performance experiments",
        },
        {"@id": "#question", "@type": "Thing", "name": story.question},
    ]
    entities += [_person(at, author) for at, author in enumerate(_authors(story.about))]
    entities += [
        {"@id": _organisation_id(name), "@type": "Organization", "name": name}
        for name in dict.fromkeys(each.affiliation for each in story.about.authors if each.affiliation)
    ]
    if story.about.licence is not None:
        entities.append(
            {
                "@id": licence_id(story.about),
                "@type": "CreativeWork",
                "name": story.about.licence,
                "description": f"{story.about.licence} of the SPDX licence list",
            }
        )
    origins = story.provenance.origins or filter(None, (story.provenance.origin,))
    entities += [
        _origin(at, asdict_origin) for at, asdict_origin in enumerate(map(_facts_of_origin, origins))
    ]
    return entities


def _facts_of_origin(origin: object) -> Mapping[str, str]:
    return {name: str(getattr(origin, name)) for name in ("importer", "file_name", "sha256", "byte_count")}


def _origin(position: int, facts: Mapping[str, str]) -> Entity:
    return {
        "@id": f"#origin-{position + 1}",
        "@type": "CreativeWork",
        "name": facts["file_name"],
        "description": f"File of {facts['importer']} that was imported; not part of the package",
        "contentSize": facts["byte_count"],
        "sha256": facts["sha256"],
    }


def _organisation_id(name: str) -> str:
    return f"#organisation-{quote(name, safe='')}"


def _person(position: int, author: Author | None) -> Entity:
    if author is None:
        return {"@id": "#author-1", "@type": "Person", "name": "not named"}
    entity: Entity = {"@id": author_id(position, author), "@type": "Person", "name": author.shown}
    if author.affiliation:
        entity["affiliation"] = {"@id": _organisation_id(author.affiliation)}
    return entity
