"""The importer of formats that are not Steelyard's own: files are read one by one, then written together."""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from steelyard.errors import DataError, UsageError
from steelyard.model.plain_file import open_plain_file, read_plain_file
from steelyard.record.importers.column_blocks import PlainText
from steelyard.record.importers.foreign import Source, unpacked, unreadable
from steelyard.record.importers.foreign_result import STUDY, ForeignResult, ReadFile, write_foreign
from steelyard.record.importers.reading import ReadOptions
from steelyard.record.provenance import Origin

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from steelyard.record.importers.foreign import ForeignFile
    from steelyard.record.importers.interface import ImportSummary


class Alternatives(StrEnum):
    """What is compared in a result of a format."""

    FACTORS = "factors"
    """Levels of each factor but the workload, all else equal, with the first level."""
    CELLS = "cells"
    """Every cell with the first."""
    NONE = "none"
    """Nothing: the factors are sizes of messages."""


def refuse_twins(paths: Sequence[Path]) -> None:
    """Refuse a file that is given twice: its values would count as two repetitions."""
    known: dict[str, Path] = {}
    for path in paths:
        if (before := known.setdefault(os.path.realpath(path), path)) is not path:
            message = f"cannot import a file twice: `{before}` and `{path}` are one file"
            raise UsageError(message, hint="give each file once", code="usage.same-file")


def refused_together(refused: Sequence[DataError]) -> DataError:
    """Give one error that names what is wrong in all files."""
    if len(refused) == 1:
        return refused[0]
    hints = dict.fromkeys(error.hint for error in refused if error.hint)
    message = "\n".join(error.message for error in refused)
    return DataError(message, hint="; ".join(hints), code=refused[0].code)


@dataclass(frozen=True, slots=True)
class ForeignImporter:
    """Importer of one format.

    Parameters
    ----------
    name, description : str
        On the command line, and one sentence.
    expected : str
        What the format looks like, for hints.
    read : callable
        Reads one file.
    alternatives : Alternatives
        What is compared.
    files_of : callable or None
        Gives the files of a folder; ``None`` for formats of single files.
    read_plain : callable or None
        Reads a file of plain text as it comes, or gives ``None``: then `read` gets all of it.
    study : str
        Study that analyses the result.
    write : callable
        Writes what was read as a result folder.
    sign : Pattern or None
        What is at the begin of any output of the tool, also of one that cannot be read: an error is that of
        this format then.
    """

    name: str
    description: str
    expected: str
    read: Callable[[Source, ReadOptions], ForeignFile]
    alternatives: Alternatives = Alternatives.FACTORS
    files_of: Callable[[Path], list[Path]] | None = None
    read_plain: Callable[[Source, PlainText, ReadOptions], ForeignFile | None] | None = None
    study: str = STUDY
    write: Callable[[Path, Sequence[ReadFile], ForeignResult], ImportSummary] = write_foreign
    sign: re.Pattern[str] | None = None

    def import_file(self, path: Path, result: Path) -> ImportSummary:
        """Read one file and write a result folder."""
        return self.import_files([path], result)

    def import_files(
        self, paths: Sequence[Path], result: Path, options: ReadOptions | None = None
    ) -> ImportSummary:
        """Read files and write one result folder; each file is a block.

        Parameters
        ----------
        paths : sequence of Path
            At least one; their order is the order of the blocks.
        result : Path
            Folder to write.
        options : ReadOptions or None
            Columns and unit, for tables.

        Raises
        ------
        DataError
            If a file is damaged or contains no value, naming file and place; nothing is written then.
        """
        refuse_twins(paths)
        options = options or ReadOptions()
        read, refused = [], []
        for block, path in enumerate(paths):
            try:
                read += [self._read(block, part, options) for part in self._parts(path)]
            except DataError as error:
                refused.append(error)
        if refused:
            raise refused_together(refused)
        if not any(file.content.holds_values for file in read):
            listed = ", ".join(f"`{path}`" for path in paths)
            said = dict.fromkeys(note for file in read for note in file.content.notes)
            message = f"{listed}: no value in the file{''.join(f'; {note}' for note in said)}"
            raise DataError(message, hint=f"expected {self.expected}", code="data.import")
        kind = ForeignResult(self.name, self.alternatives, self.study, options.stated)
        return self.write(result, read, kind)

    def _parts(self, path: Path) -> list[Path]:
        if self.files_of is None or not path.is_dir():
            return [path]
        found = self.files_of(path)
        if not found:
            message = f"`{path}` has no file of the format `{self.name}` below it"
            raise DataError(message, hint=f"expected {self.expected}", code="data.import")
        return found

    def _read(self, block: int, path: Path, options: ReadOptions) -> ReadFile:
        try:
            plain = self._read_plain(path, options)
            if plain is not None:
                text, content_of = plain
                return self._file(block, path, content_of, (text.sha256, text.size))
            content = read_plain_file(path, may_be_pipe=True)
        except OSError as error:
            raise unreadable(path, error, self.expected) from error
        source = unpacked(Source(path, content, self.expected))
        found: ForeignFile | None = None
        if self.read_plain is not None and (source.content != content or not path.is_file()):
            # What was packed, or came through a pipe, has not been looked at.
            found = self.read_plain(source, PlainText(io.BytesIO(source.content)), options)
        if found is None:
            found = self.read(source, options)
        return self._file(block, path, found, (hashlib.sha256(content).hexdigest(), len(content)))

    def _read_plain(self, path: Path, options: ReadOptions) -> tuple[PlainText, ForeignFile] | None:
        if self.read_plain is None or not path.is_file():
            return None
        with open_plain_file(path) as file:
            text = PlainText(file)
            found = self.read_plain(Source(path, b"", self.expected), text, options)
        return None if found is None else (text, found)

    def _file(self, block: int, path: Path, found: ForeignFile, read: tuple[str, int]) -> ReadFile:
        return ReadFile(block, Origin(self.name, found.form, path.name, *read, found.facts), found)
