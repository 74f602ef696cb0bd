"""Texts of a package that people and other programs read: citation, licence, study file."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.run.hosts.device import Device
from steelyard.share.package.crate import keywords

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.model import Plan
    from steelyard.share.about import About, Author
    from steelyard.share.package.crate import Story

CITATION_NAME: Final = "CITATION.cff"
STUDY_FILE_NAME: Final = "study.toml"
DEVICES_NAME: Final = "devices.toml"
HERE: Final = "here"
"""Name under which a study knows the host as it is, where no device of a file is this host."""

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


def _said(text: str) -> str:
    """Give a text in double quotes: what JSON writes is the same text in YAML and in TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def citation(story: Story) -> str:
    """Write ``CITATION.cff`` of the Citation File Format 1.2.0."""
    lines = [
        "cff-version: 1.2.0",
        f"message: {_said('If you use this package, please cite it as below.')}",
        "type: dataset",
        f"title: {_said(story.title)}",
        f"abstract: {_said(story.description)}",
        "authors:",
        *(line for author in story.about.authors for line in _cited(author)),
    ]
    if not story.about.authors:
        lines.append(f"  - name: {_said('not named')}")
    lines.append(f"date-released: {_said(story.published)}")
    if story.about.licence is not None:
        lines.append(f"license: {story.about.licence}")
    lines += ["keywords:", *(f"  - {_said(word)}" for word in keywords(story))]
    lines += [
        "identifiers:",
        "  - type: other",
        f"    value: {_said(f'steelyard-plan:{story.plan.id}')}",
        f"    description: {_said('SHA-256 of the plan that was run')}",
    ]
    return "\n".join(lines) + "\n"


def _cited(author: Author) -> Iterator[str]:
    named = {
        "name": None if author.family_names else author.name,
        "family-names": author.family_names,
        "given-names": author.given_names if author.family_names else None,
        "orcid": author.orcid,
        # CFF knows the affiliation of persons only; an author with one name counts as an entity there.
        "affiliation": author.affiliation if author.family_names else None,
    }
    lead = "  - "
    for key, value in named.items():
        if value is not None:
            yield f"{lead}{key}: {_said(value)}"
            lead = "    "


def licence(about: About, notes: str | None) -> str:
    """Write the licence notes.

    Parameters
    ----------
    about : About
        What people say.
    notes : str or None
        What the study itself says of licences.
    """
    lines = ["# Licence", ""]
    if about.licence is None:
        lines.append("The licence of this package is not stated: ask its authors.")
    else:
        lines.append(
            f"This package is published under {about.licence} (SPDX identifier), whose text is at "
            f"<https://spdx.org/licenses/{about.licence}.html>."
        )
    for heading, text in (("Notes", about.licence_notes), ("Notes of the study", notes)):
        if text:
            lines += ["", f"## {heading}", "", text]
    lines += ["", "Workload sources that come with Steelyard are under Apache-2.0."]
    return "\n".join(lines) + "\n"


def request_of(plan: Plan) -> dict[str, object] | None:
    """Give what was asked of a study, by key of a study file; ``None`` where the plan keeps no request."""
    request = plan.options.get("request")
    if not isinstance(request, str):
        return None
    found = json.loads(request)
    return {"study": plan.study, **found} if isinstance(found, dict) else None


def study_file(plan: Plan) -> str | None:
    """Write the study file that asks for the same; ``None`` where the plan keeps no request."""
    request = request_of(plan)
    if request is None:
        return None
    if request.get("devices") is not None:
        request["devices"] = DEVICES_NAME  # the path there says nothing here
    return "\n".join(_table((), request)).lstrip("\n") + "\n"


def devices_file(plan: Plan) -> str | None:
    """Write the device file that a study was given; ``None`` where it was given none.

    The plan keeps what was in the file. A device of the study itself, the host as it is, is left out.
    """
    if (request_of(plan) or {}).get("devices") is None:
        return None
    try:
        devices = json.loads(str(plan.options.get("devices")))
        own = json.loads(json.dumps({HERE: Device(HERE).document()}))
        tables = {name: _stated(each) for name, each in devices.items() if own.get(name) != each}
    except (ValueError, AttributeError, RecursionError) as error:
        message = "the plan does not say which devices its study had"
        raise DataError(message, hint="give the result as it was recorded", code="data.devices") from error
    return "\n".join(_table((), {"devices": tables})).lstrip("\n") + "\n"


def _stated(device: Mapping[str, object]) -> dict[str, object]:
    """Give what a file says of a device: without what is empty, or follows from its kind."""
    empty: tuple[object, ...] = (None, "", [], {})
    return {key: value for key, value in device.items() if key != "is_played" and value not in empty}


def _table(path: tuple[str, ...], content: Mapping[str, object]) -> Iterator[str]:
    """Write a table: its values first, then the tables in it."""
    tables: dict[str, Mapping[str, object]] = {}
    lines: list[str] = []
    for key, value in content.items():
        if isinstance(value, dict):
            tables[key] = value
        elif value is not None:  # TOML has no word for what was not given
            lines.append(f"{_key(key)} = {_value(value)}")
    if path and lines:
        yield f"\n[{'.'.join(map(_key, path))}]"
    yield from lines
    for key, inner in tables.items():
        yield from _table((*path, key), inner)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _said(name)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(each) for each in value if each is not None) + "]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items() if each is not None)
        return "{ " + inner + " }" if inner else "{}"
    return _said(str(value))
