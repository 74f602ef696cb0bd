"""Damaged versions of valid files: JSON trees, lines of tables, bytes; and files that never were valid."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Draw = Callable[[st.SearchStrategy[Any]], Any]

DEEPEST: Final = 200_000
ODD_TOKENS: Final = (
    "null",
    "true",
    "NaN",
    "Infinity",
    "-Infinity",
    "-0",
    "-0.0",
    "0",
    "-1",
    "1e400",
    "-1e400",
    "1e-400",
    "5e-324",
    "1.7976931348623157e308",
    "9" * 5000,
    "1e" + "9" * 30,
    "0.1e-99999999",
    "9223372036854775808",
    "-9223372036854775809",
    "1e18",
    "0." + "3" * 3000,
    '""',
    '" "',
    '"NaN"',
    '"1e400"',
    '"\\u0000"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"a/b\\\\c"',
    '"../../x"',
    '"\\n,;\\t"',
    '"' + "x" * 70_000 + '"',
    '"\u202e\u00e9\u4e2d"',
    "[]",
    "{}",
    "[[]]",
    "[null]",
    "[NaN]",
    '[1, "x"]',
    '{"": 1}',
    '{"a": {"a": {"a": 1}}}',
    "[" * 60 + "]" * 60,
)
ODD_CELLS: Final = (
    "",
    " ",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "-1",
    "0",
    "-0.0",
    "1e400",
    "1e-400",
    "9" * 400,
    "1_000",
    "0x10",
    "1,5",
    "\u0663",
    "\u00b2",
    '"',
    '""',
    '"open',
    "a" * 140_000,
    "\u00a0",
    "\ufeff1",
    "=1+1",
    "true",
    "1e18",
    "9223372036854775808",
    "+5",
    ".5",
    "5.",
    "1 2",
)
_LEAVES: Final = (
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["value", "name", "data", "mean", "1e9"])
)
TREES: Final = st.recursive(
    _LEAVES, lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=6), part, max_size=4)
)


class Raw(str):
    """Text that stands in a document as it is."""

    __slots__ = ()


def written(value: Any) -> str:
    """Write a tree in which objects are lists of pairs (so that a key may stand twice) and tokens are raw."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(key)}:{written(part)}" for key, part in value.items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


class Pairs:
    """A JSON object whose keys may repeat."""

    __slots__ = ("items",)

    def __init__(self, items: list[tuple[str, Any]]) -> None:
        self.items = items


def parsed(text: str) -> Any:
    """Read JSON with objects as `Pairs`."""
    return json.loads(text, object_pairs_hook=Pairs)


def damaged_tree(value: Any, draw: Draw) -> Any:
    """Damage one place somewhere inside a tree."""
    if draw(st.integers(0, 6)):
        if isinstance(value, Pairs) and value.items:
            return _damaged_object(value.items, draw)
        if isinstance(value, list) and value:
            return _damaged_list(value, draw)
    return draw(TREES) if draw(st.integers(0, 3)) == 0 else _odd(draw)


def _odd(draw: Draw) -> Raw:
    return Raw(draw(st.sampled_from(ODD_TOKENS)))


def _damaged_object(items: list[tuple[str, Any]], draw: Draw) -> Pairs:
    place = draw(st.integers(0, len(items) - 1))
    key, part = items[place]
    before, after = items[:place], items[place + 1 :]
    way = draw(st.integers(0, 9))
    if way == 0:
        return Pairs([*before, *after])
    if way == 1:
        return Pairs([*items, (key, _odd(draw))])
    name = draw(st.text(max_size=5)) if way == 2 else key
    return Pairs([*before, (name, damaged_tree(part, draw)), *after])


def _damaged_list(values: list[Any], draw: Draw) -> list[Any]:
    place = draw(st.integers(0, len(values) - 1))
    way = draw(st.integers(0, 9))
    if way == 0:
        return values[:place] + values[place + 1 :]
    if way == 1:
        return values * draw(st.integers(2, 5))
    if way == 2:
        return [*values, _odd(draw)]
    return [damaged_tree(part, draw) if at == place else part for at, part in enumerate(values)]


def damaged_lines(text: str, draw: Draw) -> str:
    """Damage lines and cells of a table."""
    lines = text.splitlines() or [""]
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(lines) - 1))
        way = draw(st.integers(0, 7))
        if way == 0 and len(lines) > 1:
            lines.pop(place)
        elif way == 1:
            lines.insert(place, lines[draw(st.integers(0, len(lines) - 1))])
        elif way == 2:
            lines = lines * draw(st.integers(2, 30))
        elif way == 3:
            lines.insert(place, draw(st.text(max_size=20)))
        else:
            mark = next((mark for mark in ",;\t" if mark in lines[place]), " ")
            cells = lines[place].split(mark)
            at = draw(st.integers(0, len(cells) - 1))
            if way == 4:
                cells.pop(at)
            elif way == 5:
                cells.insert(at, draw(st.sampled_from(ODD_CELLS)))
            else:
                cells[at] = draw(st.sampled_from(ODD_CELLS) | st.text(max_size=6) | st.floats().map(repr))
            lines[place] = mark.join(cells)
    return draw(st.sampled_from(["\n", "\r\n", "\r"])).join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))


def damaged_bytes(content: bytes, draw: Draw) -> bytes:
    """Cut off, overwrite, encode otherwise, or repeat bytes."""
    way = draw(st.integers(0, 8))
    if way == 0:
        return content[: draw(st.integers(0, len(content)))]
    if way == 1:
        return content[draw(st.integers(0, len(content))) :]
    if way in {2, 3}:
        text = content.decode("utf-8", "replace")
        form = draw(st.sampled_from(["utf-16", "utf-32", "utf-8-sig", "utf-16-be", "cp037"]))
        return text.encode(form, "replace")
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, max(len(changed) - 1, 0)))
        inserted = draw(
            st.sampled_from([b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x1b[2J"]) | st.binary(max_size=5)
        )
        changed[place : place + draw(st.integers(0, 4))] = inserted
    return bytes(changed)


def nested(draw: Draw) -> bytes:
    """Nest deeper than any parser goes."""
    depth = draw(st.integers(1, DEEPEST))
    opening, closing = draw(st.sampled_from([(b"[", b"]"), (b'{"a":', b"}"), (b'[{"benchmark":', b"}]")]))
    return opening * depth + b"1" + closing * draw(st.sampled_from([0, depth]))


@st.composite
def files(draw: Draw, seeds: tuple[bytes, ...]) -> bytes:
    """Give a damaged version of one of some valid files, or a file that never was valid."""
    seed = draw(st.sampled_from(seeds))
    way = draw(st.integers(0, 19))
    if way == 0:
        return draw(st.binary(max_size=400))
    if way == 1:
        return nested(draw)
    if way == 2:
        return json.dumps(draw(TREES)).encode()
    content = seed
    if seed.lstrip()[:1] in {b"[", b"{"}:
        tree = parsed(seed.decode())
        for _ in range(draw(st.integers(1, 3))):
            tree = damaged_tree(tree, draw)
        content = written(tree).encode("utf-8", "replace")
    elif not seed.startswith(b"PAR1"):
        content = damaged_lines(seed.decode(), draw).encode("utf-8", "replace")
    if way < 6 or seed.startswith(b"PAR1"):
        content = damaged_bytes(content, draw)
    return content
