"""Check that no files import each other in a circle, in Python and in Rust.

Imports for types alone count too. In Rust a file depends on another where it names something of it by
`crate::`, `super::` or `self::`; that a module declares its parts is no dependency.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / "src"
CRATES = ROOT / "crates"
Graph = dict[str, set[str]]


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Give the groups of files each of which reaches every other."""
    reached = {file: _reached(graph, file) for file in graph}
    groups = {
        frozenset(other for other in reached[file] if file in reached[other])
        for file in graph
        if file in reached[file]
    }
    return sorted(sorted(each) for each in groups)


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = set(graph[start])
    while waiting:
        found |= waiting
        waiting = {following for file in waiting for following in graph[file]} - found
    return found


def python_graph(source: Path) -> Graph:
    """Give which modules a module imports."""
    modules = {}
    for path in source.rglob("*.py"):
        parts = path.relative_to(source).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph: Graph = {}
    for name, path in modules.items():
        used = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                within = [f"{node.module}.{each.name}" for each in node.names]
                used |= {each if each in modules else node.module for each in within}
            elif isinstance(node, ast.Import):
                used |= {each.name for each in node.names}
        graph[name] = (used & modules.keys()) - {name}
    return graph


_TEST = re.compile(r"#\[cfg\((?:all\()?test[^\]]*\]\s*mod \w+ \{")
_COMMENT = re.compile(r"//[^\n]*")
_USE = re.compile(r"\buse\s+((?:crate|super|self)\b[^;]*);")
_PATH = re.compile(r"(?<![\w:])((?:crate|super|self)(?:::\w+)+)")


def rust_graph(source: Path) -> Graph:
    """Give which files of a crate name something of which others."""
    modules: dict[tuple[str, ...], Path] = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        modules[parts[:-1] if parts[-1] in {"mod", "lib", "main"} else parts] = path
    graph: Graph = {}
    for module, path in modules.items():
        text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
        begun = _TEST.search(text)
        used = set()
        for name in _named(text[: begun.start()] if begun else text):
            place = _resolved(name, module)
            while place and place not in modules:
                place = place[:-1]
            if place and place != module:
                used.add("::".join(place))
        graph["::".join(module)] = used
    return {name: {each for each in used if each in graph} for name, used in graph.items()}


def _named(text: str) -> Iterator[list[str]]:
    for match in _USE.finditer(text):
        yield from _flattened(re.sub(r"\s+", "", re.sub(r"\bas\s+\w+", "", match[1])))
    for match in _PATH.finditer(_USE.sub("", text)):
        yield match[1].split("::")


def _flattened(tree: str) -> Iterator[list[str]]:
    """Write `a::{b, c::{d}}` out as `a::b` and `a::c::d`."""
    head, brace, rest = tree.partition("{")
    if not brace:
        yield [part for part in head.split("::") if part not in {"", "*"}]
        return
    depth, begin = 0, 0
    inner = rest[: rest.rindex("}")]
    for at, letter in enumerate(inner + ","):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if inner[begin:at]:
                yield from _flattened(head + inner[begin:at])
            begin = at + 1


def _resolved(name: list[str], module: tuple[str, ...]) -> tuple[str, ...]:
    base: tuple[str, ...] = () if name[0] == "crate" else module
    parts = list(name)
    while parts and parts[0] in {"crate", "self", "super"}:
        if parts.pop(0) == "super":
            base = base[:-1]
    return (*base, *parts)


def main() -> None:
    """Print every circle and fail if there is one."""
    found = [("Python", each) for each in circles(python_graph(PYTHON))]
    for crate in sorted(CRATES.glob("*/src")):
        found += [(crate.parent.name, each) for each in circles(rust_graph(crate))]
    if found:
        lines = [f"files in a circle ({where}): {', '.join(files)}" for where, files in found]
        raise SystemExit("\n".join(lines))


if __name__ == "__main__":
    main()
