"""Lines of the keys and values of a TOML document, which `tomllib` does not tell."""

from __future__ import annotations

from bisect import bisect_right
from typing import TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and array indices from the root of a document to a value."""

_SPACE = " \t"
_BLANK = " \t\r\n"
_QUOTES = ('"""', "'''", '"', "'")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\", "e": "\x1b"}
_HEX_DIGITS = {"u": 4, "U": 8, "x": 2}


def locate_keys(text: str) -> dict[KeyPath, int]:
    r"""Give the line of every table, key and array element of a document.

    Parameters
    ----------
    text : str
        A document that `tomllib` has accepted; what is given for any other is undefined.

    Returns
    -------
    dict
        Line from 1, by path. A table opened several times has its first line.

    Examples
    --------
    >>> locate_keys('seed = 3\n[limits]\nmemory_mib = 5\n')
    {('seed',): 1, ('limits',): 2, ('limits', 'memory_mib'): 3}
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


class _Scanner:
    """Walks over a valid document and notes where its parts begin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self.array_lengths: dict[KeyPath, int] = {}
        self.line_starts = [0] + [index + 1 for index, char in enumerate(text) if char == "\n"]

    def document(self) -> None:
        table: KeyPath = ()
        while self.skip_blank():
            if self.text.startswith("[", self.at):
                table = self.header()
            else:
                self.assignment(table)

    def header(self) -> KeyPath:
        start = self.at
        is_array = self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        parts = self.key()
        self.at += 2 if is_array else 1
        path: KeyPath = ()
        for part in parts[:-1]:
            path = self.into_last((*path, part))
            self.note(path, start)
        path = (*path, parts[-1])
        if not is_array:
            path = self.into_last(path)
            self.note(path, start)
            return path
        self.note(path, start)
        index = self.array_lengths.get(path, 0)
        self.array_lengths[path] = index + 1
        self.note((*path, index), start)
        return (*path, index)

    def into_last(self, path: KeyPath) -> KeyPath:
        """Follow an array of tables into its last table."""
        length = self.array_lengths.get(path)
        return path if length is None else (*path, length - 1)

    def assignment(self, table: KeyPath) -> None:
        start = self.at
        path = table
        for part in self.key():
            path = (*path, part)
            self.note(path, start)
        self.at += 1  # the equals sign
        self.skip(_SPACE)
        self.value(path)

    def key(self) -> tuple[str, ...]:
        """Read a dotted key; leaves the position at the character behind it."""
        parts = []
        while True:
            self.skip(_SPACE)
            parts.append(self.string() if self.text[self.at] in "\"'" else self.bare_key())
            self.skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return tuple(parts)
            self.at += 1

    def bare_key(self) -> str:
        start = self.at
        while self.text[self.at] not in ".=] \t":
            self.at += 1
        return self.text[start : self.at]

    def value(self, path: KeyPath) -> None:
        char = self.text[self.at]
        if char in "\"'":
            self.string()
        elif char == "[":
            self.array(path)
        elif char == "{":
            self.inline_table(path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                self.at += 1

    def array(self, path: KeyPath) -> None:
        self.at += 1
        index = 0
        while self.skip_blank() and self.text[self.at] != "]":
            self.note((*path, index), self.at)
            self.value((*path, index))
            index += 1
            self.skip_separator()
        self.at += 1

    def inline_table(self, path: KeyPath) -> None:
        self.at += 1
        while self.skip_blank() and self.text[self.at] != "}":
            self.assignment(path)
            self.skip_separator()
        self.at += 1

    def skip_separator(self) -> None:
        if self.skip_blank() and self.text[self.at] == ",":
            self.at += 1

    def string(self) -> str:
        quote = next(quote for quote in _QUOTES if self.text.startswith(quote, self.at))
        self.at += len(quote)
        read: list[str] = []
        while not self.text.startswith(quote, self.at):
            if self.text[self.at] == "\\" and quote[0] == '"':
                read.append(self.escape())
            else:
                read.append(self.text[self.at])
                self.at += 1
        self.at += len(quote)
        while len(quote) > 1 and self.text.startswith(quote[0], self.at):
            self.at += 1  # up to two quotes may stand before the closing ones
        return "".join(read)

    def escape(self) -> str:
        letter = self.text[self.at + 1]
        self.at += 2
        digits = _HEX_DIGITS.get(letter)
        if digits is None:
            return _ESCAPES.get(letter, "")
        code = self.text[self.at : self.at + digits]
        self.at += digits
        return chr(int(code, 16))

    def skip(self, characters: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in characters:
            self.at += 1

    def skip_blank(self) -> bool:
        """Skip blanks, line ends and comments; give whether anything is left."""
        self.skip(_BLANK)
        while self.text.startswith("#", self.at):
            while self.at < len(self.text) and self.text[self.at] != "\n":
                self.at += 1
            self.skip(_BLANK)
        return self.at < len(self.text)

    def note(self, path: KeyPath, at: int) -> None:
        self.lines.setdefault(path, bisect_right(self.line_starts, at))
