"""Hashes of the recorded tables, stored with the result and compared later."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.record.interim_log import CANDIDATES_NAME, LOOKS_NAME
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance, write_provenance
from steelyard.record.trace_folder import trace_files

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance


def hash_tables(result: Path) -> dict[str, str]:
    """Give the SHA-256 of plan, looks, candidates, each recorded table and trace, by path in the folder."""
    candidates = [
        result / "plan.json",
        result / LOOKS_NAME,
        result / CANDIDATES_NAME,
        *sorted(result.glob("*.parquet")),
        *sorted(result.glob("measurements/*.parquet")),
        *trace_files(result),
    ]
    return {
        path.relative_to(result).as_posix(): hash_file(path)
        for path in candidates
        if path.is_file() and not path.name.startswith(".")
    }


def hash_file(path: Path) -> str:
    """Give the SHA-256 of a file as hexadecimal text."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seal_tables(result: Path) -> None:
    """Store the hashes of the tables as they are now in ``provenance.json``, if there is one."""
    if (result / PROVENANCE_NAME).exists():
        write_provenance(result, replace(read_provenance(result), tables=hash_tables(result)))


def is_cut_import(plan: Plan, provenance: Provenance) -> bool:
    """Whether an import ended before its end, which is the seal."""
    return "origin_sha256" in plan.options and not provenance.tables


def altered_tables(result: Path) -> list[str]:
    """Give one sentence per table that is not what ``provenance.json`` says.

    Raises
    ------
    DataError
        If the provenance cannot be read.
    """
    expected, found = read_provenance(result).tables, hash_tables(result)
    problems = [f"`{name}` is absent" for name in expected if name not in found]
    problems += [
        f"`{name}` was added after the tables were written" for name in found if name not in expected
    ]
    problems += [
        f"`{name}` was changed after it was written"
        for name in expected
        if name in found and found[name] != expected[name]
    ]
    return problems
