"""Write docs/reference/api.md from the docstrings of what users and authors of plug-ins call."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "api.md"
HEAD = """\
# Python interface

Written by `scripts/api_page.py` from the docstrings, which `make check` compares; tests run the examples.
"""
CONTENT = {
    "Results": {
        "Read what a run, a comparison or an import left, as data frames.": (
            "steelyard:open",
            "steelyard.studies.opened_result:Result",
            "steelyard.model.finding:FindingSet",
            "steelyard.model.finding:Finding",
            "steelyard.model.finding:Estimate",
        ),
    },
    "Statistics": {
        "Ask about samples and commands without a study.": (
            "steelyard:compare",
            "steelyard:interval",
            "steelyard:IntervalEstimate",
            "steelyard:fit_segments",
            "steelyard:linear_model",
        ),
    },
    "Plug-ins": {
        "See the guides: [a study](../guides/add-a-study.md), [an isolation technology]"
        "(../guides/add-an-isolation-technology.md), [an importer](../guides/add-an-importer.md).": (
            "steelyard.study:Study",
            "steelyard.run.isolation.interface:Isolation",
            "steelyard.run.isolation.interface:Availability",
            "steelyard.record.importers.interface:Importer",
            "steelyard.record.importers.foreign_importer:ForeignImporter",
            "steelyard.record.importers.foreign:ForeignFile",
            "steelyard.record.importers.foreign:ForeignRun",
            "steelyard.record.importers.foreign:Section",
            "steelyard.record.importers.foreign:Published",
            "steelyard.record.importers.foreign:Source",
        ),
    },
}
FIELDS = {"Parameters", "Returns", "Raises", "Attributes"}
HEADING = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)
REFERENCE = re.compile(r"^\.\. \[\d+\] ", re.MULTILINE)


def page() -> str:
    parts = [HEAD]
    for title, groups in CONTENT.items():
        parts.append(f"## {title}\n")
        for text, places in groups.items():
            parts.append(f"{text}\n")
            parts += [part for place in places for part in entry(place)]
    return "\n".join(parts)


def entry(place: str) -> Iterator[str]:
    """Give what is said of one object; of a class also its methods and properties."""
    module, _, name = place.partition(":")
    thing = getattr(import_module(module), name)
    yield f"### `{module}.{name}{signature(thing)}`\n"
    yield from sections(thing)
    if not inspect.isclass(thing):
        return
    for member, value in vars(thing).items():
        function = value.__func__ if isinstance(value, classmethod) else value
        is_property = isinstance(function, property)
        if member.startswith("_") or not (is_property or inspect.isfunction(function)):
            continue
        yield f"#### `{name}.{member}{'' if is_property else signature(function)}`\n"
        yield from sections(function)


def signature(thing: Any) -> str:
    """Give names and defaults; types stand below. Data classes are read, not called, by most."""
    if inspect.isclass(thing) and not is_dataclass(thing):
        return ""
    shown = []
    found = list(inspect.signature(thing).parameters.values())
    for number, each in enumerate(found):
        if each.kind is each.KEYWORD_ONLY and (not number or found[number - 1].kind is not each.KEYWORD_ONLY):
            shown.append("*")
        default = each.default
        is_shown = default is not each.empty and isinstance(default, str | int | float | bool | tuple | None)
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        ending = f"={default!r}" if is_shown else "" if default is each.empty else "=..."
        shown.append(f"{stars}{each.name}{ending}")
    return f"({', '.join(name for name in shown if name not in {'self', 'cls'})})"


def sections(thing: Any) -> Iterator[str]:
    head, *rest = HEADING.split(inspect.getdoc(thing) or "")
    yield prose(head)
    for title, text in zip(rest[::2], rest[1::2], strict=True):
        yield f"**{title}**\n"
        if title in FIELDS:
            yield "".join(fields(text))
        elif title == "References":
            yield prose(REFERENCE.sub("- ", text))
        else:
            yield "".join(examples(text))


def fields(text: str) -> Iterator[str]:
    """Give a list: what is named stands at the margin, what is said of it is indented."""
    for block in re.split(r"\n(?=\S)", text.strip()):
        named, _, said = block.partition("\n")
        name, _, kind = named.partition(" : ")
        shown = f"`{name}` ({plain(kind)})" if kind else f"`{name}`"
        yield f"- {shown}: {plain(' '.join(said.split()))}\n"


def examples(text: str) -> Iterator[str]:
    for block in re.split(r"\n{2,}", text.strip()):
        yield f"```python\n{block}\n```\n" if block.startswith(">>>") else prose(block)


def prose(text: str) -> str:
    return plain(text.strip()) + "\n"


def plain(text: str) -> str:
    return text.replace("``", "`")


def main() -> None:
    text = page()
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        problem = (
            "error: docs/reference/api.md is not what the docstrings say\n\n"
            "hint: .venv/bin/python scripts/api_page.py"
        )
        raise SystemExit(problem)


if __name__ == "__main__":
    main()
