"""Everything a result folder says, computed again from its raw tables and compared to the last digit."""

from __future__ import annotations

import csv
import json
import os
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.model.document import is_older_schema
from steelyard.model.finding import fields_beyond, read_findings
from steelyard.model.plan import read_plan
from steelyard.record.interim_log import CANDIDATES_NAME, LOOKS_NAME
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.record.schema import PLAN_KEY, RUNS_SCHEMA
from steelyard.record.seal import altered_tables, hash_tables
from steelyard.record.table_file import read_metadata
from steelyard.record.trace_folder import SIMULATIONS_NAME, TRACES_NAME
from steelyard.report.drawing.engine import INSTALL, NO_ENGINE, has_engine
from steelyard.report.html import engine_of, render_like
from steelyard.share.drawings import compare_figures
from steelyard.share.originals import compare_ledger, private_copy
from steelyard.share.package.entry_names import quoted
from steelyard.share.package.unpack import require_room
from steelyard.share.page_content import compare_content, released_template_of
from steelyard.share.verification import Verification
from steelyard.study import study_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import Finding, FindingSet, Plan

RAW: Final = (
    "plan.json",
    PROVENANCE_NAME,
    "analysis.json",
    LOOKS_NAME,
    CANDIDATES_NAME,
    "runs.parquet",
    "measurements",
    TRACES_NAME,
    SIMULATIONS_NAME,
)
"""What the analysis reads; everything else in a result folder is derived."""

_REPORT: Final = "report.html"
_ABSENT: Final = "absent"
_QUOTED_BEFORE: Final = 40
_QUOTED_AFTER: Final = 20


def verify(result: Path) -> list[str]:
    """Compute all findings of a result folder again and list what does not agree; see `examine`.

    Parameters
    ----------
    result : Path
        Result folder with ``findings.json``. It is not written to.

    Returns
    -------
    list of str
        One sentence per disagreement; empty if everything is confirmed.
    """
    return examine(result).problems


def examine(result: Path) -> Verification:
    """Compute everything that follows from the raw data of a result folder again, and compare.

    Compared are: the hashes of the recorded tables with those in ``provenance.json`` and ``findings.json``;
    the id of the plan in all files; the recorded tables with those that the ledger gives; every number, word
    and query of every finding, exactly; every table and model, byte by byte; the report, byte by byte, with a
    fresh rendering of the findings; and the figures, with fresh drawings. A page of another template than
    that of this version is compared by its content (`page_content`).

    Parameters
    ----------
    result : Path
        Result folder with ``findings.json``. It is not written to.

    Raises
    ------
    DataError
        If the folder cannot be read well enough to compare.
    """
    plan = read_plan(result / "plan.json")
    stored = read_findings(result / "findings.json")
    found = Verification(
        [*_identity(result, plan, stored), *_hashes(result, stored), *compare_ledger(result)]
    )
    with private_copy(result) as copy:
        _copy_raw(result, copy)
        fresh = study_of(plan.study, result).analyse(copy)
        _compare_findings(stored, fresh, found)
        found.problems.extend(_compare_tables(result, copy))
        found.problems.extend(_compare_written(result, copy))
    _compare_report(result, plan, found)
    return found


def _text(path: Path) -> str:
    """Read a file that ought to be text; what is none stays visible as a difference."""
    return path.read_text(encoding="utf-8", errors="backslashreplace")


def changed_text(shown: str, given: str) -> str:
    """Quote the first stretch of text that differs, with a few characters around it."""
    pair = zip(shown, given, strict=False)
    first = next((at for at, (one, other) in enumerate(pair) if one != other), min(len(shown), len(given)))
    begin = max(first - _QUOTED_BEFORE, 0)
    stretches = (" ".join(text[begin : first + _QUOTED_AFTER].split()) for text in (shown, given))
    was, wanted = stretches
    return f"it says `{was}`, the findings `{wanted}`"


def _identity(result: Path, plan: Plan, stored: FindingSet) -> Iterator[str]:
    """Compare the id of the plan in all files."""
    if stored.plan_id != plan.id:
        yield "`findings.json` was computed for a different plan than `plan.json`"
    if stored.study != plan.study:
        yield f"`findings.json` says study `{stored.study}`, `plan.json` says `{plan.study}`"
    if (result / PROVENANCE_NAME).exists() and read_provenance(result).plan_id != plan.id:
        yield f"`{PROVENANCE_NAME}` belongs to a different plan than `plan.json`"
    written_for = read_metadata(result / "runs.parquet", RUNS_SCHEMA).get(PLAN_KEY, b"").decode()
    if written_for != plan.id:
        yield "`runs.parquet` was written for a different plan than `plan.json`"


def _hashes(result: Path, stored: FindingSet) -> Iterator[str]:
    """Compare the tables with the hashes kept when they were written and when they were read."""
    if (result / PROVENANCE_NAME).exists():
        yield from altered_tables(result)
    now = hash_tables(result)
    for name in sorted({*stored.inputs, *now}):
        if stored.inputs.get(name) != now.get(name):
            yield f"`{name}` is not the file that `findings.json` was computed from"


def _copy_raw(result: Path, copy: Path) -> None:
    raw = [result / name for name in RAW] + list(result.glob("*.parquet"))
    paths = {path for each in raw for path in (each.rglob("*") if each.is_dir() else (each,))}
    files = {path for path in paths if path.is_file()}
    for path in sorted(paths - files):
        if not path.is_dir() and os.path.lexists(path):
            message = f"cannot verify `{path}`: it is neither a regular file nor a folder"
            raise DataError(message, hint="take the file from a copy of the result", code="data.unreadable")
    require_room(copy, (path.stat().st_size for path in files), str(result))
    for name in RAW:
        source = result / name
        if source.is_dir():
            shutil.copytree(source, copy / name)
        elif source.exists():
            shutil.copy2(source, copy / name)
    for table in result.glob("*.parquet"):
        if not (copy / table.name).exists():
            shutil.copy2(table, copy / table.name)


def _compare_findings(stored: FindingSet, fresh: FindingSet, found: Verification) -> None:
    """Compare by value, as far as the schema of the stored findings goes."""
    problems = list(_differing_findings(stored, fresh))
    found.problems.extend(problems)
    if stored.method_version == fresh.method_version:
        return
    versions = (
        f"`findings.json` was computed by version {stored.method_version} of the analysis, "
        f"this is version {fresh.method_version}"
    )
    if problems:
        found.problems.append(f"{versions}; the version of Steelyard in `{PROVENANCE_NAME}` has the other")
    else:
        found.not_compared.append(f"the version of the analysis: {versions}, and gives the same")


def _differing_findings(stored: FindingSet, fresh: FindingSet) -> Iterator[str]:
    before = {finding.id: finding for finding in stored.findings}
    after = {finding.id: finding for finding in fresh.findings}
    if len(before) != len(stored.findings):
        yield "`findings.json` contains two findings with the same id"
    for name in before:
        if name not in after:
            yield f"finding `{name}` does not follow from the tables"
    beyond = fields_beyond(stored.schema)
    for name, finding in after.items():
        if name not in before:
            yield f"finding `{name}` follows from the tables but is absent from `findings.json`"
        else:
            yield from _compare_finding(before[name], finding, beyond)
    if list(before) != list(after) and before.keys() == after.keys():
        yield "the findings are in another order than the analysis gives them"


def _compare_finding(stored: Finding, fresh: Finding, beyond: frozenset[str]) -> Iterator[str]:
    before, after = _leaves(asdict(stored)), _leaves(asdict(fresh))
    for path in sorted({*before, *after}):
        old, new = before.get(path, _ABSENT), after.get(path, _ABSENT)
        # A number that is equal as text is equal as bits; 1 and 1.0 differ on purpose only in kind.
        if old != new and not beyond.intersection(path.replace("[", ".").split(".")):
            yield f"finding `{fresh.id}`: {path} is {old}, the tables give {new}"


def _leaves(value: object, path: str = "") -> dict[str, object]:
    if isinstance(value, dict):
        parts = {f"{path}.{key}" if path else str(key): part for key, part in value.items()}
    elif isinstance(value, list | tuple):
        parts = {f"{path}[{place}]": part for place, part in enumerate(value)}
    else:
        return {path: value}
    return {name: leaf for key, part in parts.items() for name, leaf in _leaves(part, key).items()}


def _compare_tables(result: Path, copy: Path) -> Iterator[str]:
    written = {path.name for path in (result / "tables").glob("*.csv")}
    given = {path.name for path in (copy / "tables").glob("*.csv")}
    yield from (f"`tables/{name}` is absent" for name in sorted(given - written))
    yield from (f"`tables/{name}` is not a table of the analysis" for name in sorted(written - given))
    for name in sorted(given & written):
        old = (result / "tables" / name).read_bytes().splitlines()
        new = (copy / "tables" / name).read_bytes().splitlines()
        if old == new:
            if (result / "tables" / name).read_bytes() != (copy / "tables" / name).read_bytes():
                yield f"`tables/{name}` differs in its line ends"
            continue
        line = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None)
        if line is None:
            yield f"`tables/{name}` has {len(old)} lines, the findings give {len(new)}"
        else:
            yield f"`tables/{name}`, line {line + 1}, {_changed_value(old, new, line)}"


def _changed_value(old: list[bytes], new: list[bytes], line: int) -> str:
    """Name the first value of a line that differs, by the heading of its column."""
    heads, *rows = (
        next(csv.reader([row.decode(errors="replace")]), []) for row in (new[0], old[line], new[line])
    )
    for place, (was, given) in enumerate(zip(*rows, strict=False)):
        if was != given:
            name = heads[place] if place < len(heads) else f"column {place + 1}"
            return f"`{name}` is {was}, the findings give {given}"
    return "is not what the findings give"


def _compare_written(result: Path, copy: Path) -> Iterator[str]:
    """Compare what else the analysis writes, and name what it does not."""
    for folder, is_compared in (("models", True), ("tables", False)):
        given = {path.name for path in (copy / folder).glob("*")}
        found = {path.name for path in (result / folder).glob("*")}
        surplus = (name for name in found - given if is_compared or not name.endswith(".csv"))
        yield from (
            f"`{folder}/{quoted(name)[1:-1]}` is not written by the analysis" for name in sorted(surplus)
        )
        for name in sorted(given) if is_compared else ():
            if name not in found:
                yield f"`{folder}/{name}` is absent"
            elif not says_the_same(
                (result / folder / name).read_bytes(), (copy / folder / name).read_bytes()
            ):
                yield f"`{folder}/{name}` is not what the tables give"


def says_the_same(written: bytes, given: bytes) -> bool:
    """Whether a document is what is written now, or says the same in an earlier version with fewer fields."""
    if written == given:
        return True
    try:
        old, new = json.loads(written), json.loads(given)
        is_older = is_older_schema(old.pop("schema"), new.pop("schema"))
        return is_older and old.keys() < new.keys() and all(new[name] == old[name] for name in old)
    except (ValueError, LookupError, AttributeError, TypeError):
        return False


def _compare_report(result: Path, plan: Plan, found: Verification) -> None:
    """Render the report again and compare; a folder without report and figures has nothing to compare."""
    path = result / _REPORT
    if not path.exists() and not (result / "figures").exists():
        return
    page = study_of(plan.study, result).page(result)
    shown = _text(path) if path.exists() else ""
    template = released_template_of(shown)
    compare_figures(result, page, found, is_older=template is not None)
    if not path.exists():
        return
    if not has_engine() and engine_of(shown) is not None:
        found.not_compared.append(
            f"the chart engine inside `{_REPORT}`: {NO_ENGINE}, so that figures cannot be drawn again "
            f"either; install it with `{INSTALL}`"
        )
    given = render_like(page, shown)
    if shown == given:
        return
    if template is not None:
        verdicts = frozenset(finding.verdict for finding in page.findings.values())
        compare_content(template, (shown, given), verdicts, found)
        return
    again = "`steelyard report` of the folder writes it again"  # which may be a private copy: no path
    changed = f"`{_REPORT}` is not what the findings render to: {changed_text(shown, given)}; {again}"
    found.problems.append(changed)
