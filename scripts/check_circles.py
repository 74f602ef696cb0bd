"""Check that no files import each other in a circle, in Python and in Rust.

Imports for types alone count too. In Rust a file depends on another where it names something that is
defined there: so a module and a part of it are in a circle where each names what the other defines. That a
module declares its parts, or hands on what they define, is no dependency. Tests do not count.
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


_NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\bb?r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\[^']+|[^'\\])'""", re.DOTALL
)
_TEST = re.compile(r"#\[cfg\((?:all\()?test[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?\w+[^;{]*")
_INNER = re.compile(r"\bmod\s+(\w+)\s*\{")
_USE = re.compile(r"\b(pub(?:\s*\([^)]*\))?\s+)?use\s+([^;]*);")
_DEFINED = re.compile(r"\b(?:fn|struct|enum|trait|type|const|static|union)\s+(?!fn\b|unsafe\b|mut\b)(\w+)")
_PATH = re.compile(r"(?<![\w:])(\w+(?:::\w+)+)")
Name = tuple[str, ...]


class _Module:
    """What a module of a crate names: a file, or a part of one in braces."""

    def __init__(self, file: Name, text: str) -> None:
        self.file = file
        self.imported: dict[str, Name] = {}
        self.globs: list[Name] = []
        self.defined = set(_DEFINED.findall(text))
        rest = _USE.sub(" ", text)
        self.named = {tuple(each.split("::")) for each in _PATH.findall(rest)}
        for is_public, tree in _USE.findall(text):
            for path, alias in _flattened(re.sub(r"\s+as\s+", "=", tree)):
                if alias == "*":
                    self.globs.append(path)
                    continue
                self.imported[alias] = path
                if not is_public or re.search(rf"\b{alias}\b", rest):
                    self.named.add(path)


def rust_graph(source: Path) -> Graph:
    """Give which files of a crate name something of which others.

    A name that a module only hands on is one of the file that it comes from.
    """
    modules: dict[Name, _Module] = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        name = parts[:-1] if parts[-1] in {"mod", "lib", "main"} else parts
        text = _NO_CODE.sub(" ", path.read_text(encoding="utf-8"))
        if name not in modules or parts[-1] != "main":
            _add(modules, name, name, _without_tests(text))
    graph: Graph = {"::".join(module.file): set() for module in modules.values()}
    for name, module in modules.items():
        for path in module.named:
            found = _found(modules, name, path)
            if found is not None and modules[found].file != module.file:
                graph["::".join(module.file)].add("::".join(modules[found].file))
    return graph


def _add(modules: dict[Name, _Module], name: Name, file: Name, text: str) -> None:
    while inner := _INNER.search(text):
        end = _closed(text, inner.end())
        _add(modules, (*name, inner[1]), file, text[inner.end() : end - 1])
        text = text[: inner.start()] + text[end:]
    modules[name] = _Module(file, text)


def _without_tests(text: str) -> str:
    while test := _TEST.search(text):
        begins_block = text[test.end() : test.end() + 1] == "{"
        text = (
            text[: test.start()] + text[_closed(text, test.end() + 1) if begins_block else test.end() + 1 :]
        )
    return text


def _closed(text: str, at: int) -> int:
    """Give where the block ends whose brace opened before `at`."""
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at


def _flattened(tree: str, before: Name = ()) -> Iterator[tuple[Name, str]]:
    """Write `a::{b, c::{d=e}}` out as `a::b` for `b` and `a::c::d` for `e`."""
    head, brace, rest = re.sub(r"\s+", "", tree).partition("{")
    parts = (*before, *(part for part in head.split("::") if part))
    if not brace:
        path, _, alias = parts[-1].partition("=")
        whole = parts[:-1] if path in {"*", "self"} and len(parts) > 1 else (*parts[:-1], path)
        yield whole, alias or ("*" if path == "*" else whole[-1])
        return
    depth, begin = 0, 0
    inner = rest[: rest.rindex("}")]
    for at, letter in enumerate(inner + ","):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if inner[begin:at]:
                yield from _flattened(inner[begin:at], parts)
            begin = at + 1


def _found(
    modules: Mapping[Name, _Module], start: Name, path: Name, seen: frozenset[tuple[Name, Name]] = frozenset()
) -> Name | None:
    """Give the module of this crate that `path` is, or is of, where `start` names it."""
    if (start, path) in seen:
        return None
    seen |= {(start, path)}
    place, rest = start, list(path)
    while rest and rest[0] in {"crate", "self", "super"}:
        word = rest.pop(0)
        place = () if word == "crate" else place[:-1] if word == "super" else place
    is_relative = len(rest) == len(path)
    while rest and (*place, rest[0]) in modules:
        place, is_relative = (*place, rest.pop(0)), False
    if not rest:
        return place
    module = modules[place]
    if rest[0] in module.imported:
        return _found(modules, place, (*module.imported[rest[0]], *rest[1:]), seen)
    for glob in module.globs:
        within = _found(modules, place, glob, seen)
        if within is None:
            continue
        if rest[0] in modules[within].defined:
            return within
        handed = _found(modules, within, ("self", *rest), seen)
        if handed not in {None, within}:
            return handed
    return None if is_relative else place


def problems(python: Path, crates: Path) -> list[str]:
    """Name every circle of files, one a line."""
    graphs = [("Python", python_graph(python))]
    for manifest in sorted(crates.rglob("Cargo.toml")):
        crate = manifest.parent
        graphs.append((f"crate {crate.relative_to(crates)}", rust_graph(crate / "src")))
    return [
        f"files in a circle ({where}): {', '.join(files)}; move what they share to a file of its own"
        for where, graph in graphs
        for files in circles(graph)
    ]


def main() -> None:
    """Print every circle and fail if there is one."""
    if found := problems(PYTHON, CRATES):
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
