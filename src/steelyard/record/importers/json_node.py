"""JSON of foreign tools, read with the path of every value, so that an error can name it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, NoReturn

from steelyard.record.importers.foreign import is_plausible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.record.importers.foreign import Source

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a JSON document with its path.

    Every accessor raises `DataError` that names file, path and what was expected there.
    """

    source: Source
    value: Any
    path: str
    line: int = 0
    """Of a document that is one line among others; 0 for a file that is one document."""

    def member(self, name: str) -> Node:
        """Give a member that must be there."""
        content = self.value
        if not isinstance(content, dict):
            self.refuse("an object")
        if name not in content:
            self._fail(f"no member `{name}`; there are: {', '.join(map(str, list(content)[:12])) or 'none'}")
        return Node(self.source, content[name], f"{self.path}.{name}" if self.path else name, self.line)

    def optional(self, name: str) -> Node | None:
        """Give a member, or nothing where it is absent or null."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        if self.value.get(name) is None:
            return None
        return self.member(name)

    def members(self) -> Iterator[tuple[str, Node]]:
        """Give the members of an object in order."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        for name in self.value:
            yield name, self.member(name)

    def elements(self) -> list[Node]:
        """Give the elements of a list in order."""
        if not isinstance(self.value, list):
            self.refuse("a list")
        return [
            Node(self.source, value, f"{self.path}[{place}]", self.line)
            for place, value in enumerate(self.value)
        ]

    def text(self) -> str:
        """Give a text that is not empty."""
        if not isinstance(self.value, str) or not self.value.strip():
            self.refuse("a text")
        return str(self.value)

    def number(self) -> Decimal:
        """Give a finite number with all digits of the file."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | Decimal):
            self.refuse("a number")
        number = Decimal(self.value)
        if not is_plausible(number):
            self.refuse("a finite number of 0, or between 1e-100 and 1e100 in size")
        return number

    def count(self, most: int = 10**12) -> int:
        """Give a whole number from 0."""
        number = self.number()
        if number != int(number) or not 0 <= number <= most:
            self.refuse(f"a whole number from 0 to {most}")
        return int(number)

    def duration(self) -> Decimal:
        """Give a number from 0."""
        number = self.number()
        if number < 0:
            self.refuse("a number from 0")
        return number

    def shown(self) -> str:
        """Give a short text of any value, for levels and facts."""
        if isinstance(self.value, str):
            return self.value
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        if isinstance(self.value, int | Decimal):
            return str(self.value)
        return json.dumps(self.value, default=str, sort_keys=True)

    def refuse(self, expected: str) -> NoReturn:
        """Raise the error for a value of another kind."""
        shown = " ".join(self.shown().split())
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
        self._fail(f"`{shown}` is not {expected}")

    def _fail(self, text: str) -> NoReturn:
        place = f"at `{self.path}`" if self.path else "at the top"
        self.source.refuse(f"line {self.line}, {place}" if self.line else place, text)


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Give the members of an object; of two of one name JSON's readers take one or the other.

    Two that say the same are one: iperf3 repeats some for each of its streams.
    """
    found = dict(members)
    if len(found) < len(members):
        twin = next((name for name, value in members if value != found[name]), None)
        if twin is not None:
            message = f"an object has the member `{twin[:_SHOWN]}` twice"
            raise ValueError(message)
    return found


_DECODER: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=Decimal, object_pairs_hook=_object)
_NOT_BLANK: Final = re.compile(r"\S")


def read_json(source: Source) -> Node:
    """Parse a document; numbers keep their digits.

    Raises
    ------
    DataError
        Naming line and column of what is not JSON.
    """
    return _parsed(source, source.text())[0]


def read_json_line(source: Source, line: int, text: str) -> Node:
    """Parse a line that is a document of its own; an error names the line.

    Raises
    ------
    DataError
        Naming line and column of what is not JSON.
    """
    node, _ = _parsed(source, text, line)
    return Node(source, node.value, "", line)


def read_json_documents(source: Source, begin: re.Pattern[str] = _NOT_BLANK) -> list[Node]:
    """Parse documents that stand one behind the other, as tools append them.

    Parameters
    ----------
    source : Source
        The file.
    begin : Pattern
        What each document begins with; text of another kind between them is passed over.

    Raises
    ------
    DataError
        Naming line and column of what is not JSON.
    """
    text, place, found = source.text(), 0, list[Node]()
    while (matched := begin.search(text, place)) is not None:
        node, place = _parsed(source, text, begin=matched.start())
        found.append(node)
    return found or [read_json(source)]


def _parsed(source: Source, text: str, first_line: int = 1, begin: int | None = None) -> tuple[Node, int]:
    """Give the document that begins at a place, else the only one, and where it ends."""
    try:
        value, end = (_DECODER.decode(text), len(text)) if begin is None else _DECODER.raw_decode(text, begin)
        if "\\u" in text:  # an escape may name half a character, which no file can hold
            json.dumps(value, ensure_ascii=False, default=str).encode()
        return Node(source, value, ""), end
    except json.JSONDecodeError as error:
        place = f"line {error.lineno + first_line - 1}, column {error.colno}"
        if error.msg == "Extra data" and text.lstrip().startswith(("{", "[")):
            source.refuse(place, "another document begins here; give each one a file of its own")
        is_cut = not text[error.pos :].strip() and text.strip()
        source.refuse(place, f"not JSON: {error.msg}{'; it was cut off' if is_cut else ''}")
    except RecursionError:
        source.refuse("", "not JSON that can be read: nested too deeply")
    except (ValueError, InvalidOperation) as error:
        source.refuse("", f"not JSON that can be read: {error}")
