"""Tables of the parallel packets experiments: medians of rates and of speed-ups, one row per combination."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.delimited import headed_rows, require_number
from steelyard.record.importers.foreign import WORKLOAD, ForeignFile, ForeignRun, Published, Section
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.problem_list import ProblemList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

STUDY: Final = "scaling"
FACTORS: Final = ("load", "mean_work", "depth", "strategy", "lock", "workers", "duration_ms")
"""Factors of a packets result beside the workload, in the order of its tables."""

LOADS: Final = {"t": "uniform", "f": "exponential"}
STRATEGIES: Final = {
    "L": "LockFree",
    "H": "HomeQueue",
    "A": "Awesome",
    "R": "RandomQueue",
    "Q": "LastQueue",
    "W": "work stealing",
    "M": "shared MPMC",
    "B": "batch dequeue",
    "F": "leader/followers",
}
"""Names of the strategies by the letter of the command line."""

LOCKS: Final = {
    "n": "none",
    "nan": "none",
    "t": "TAS",
    "b": "TTAS+backoff",
    "k": "ticket",
    "s": "std mutex",
    "p": "pthread mutex",
    "g": "parking_lot",
    "a": "Anderson",
    "c": "CLH",
    "m": "MCS",
}
"""Names of the locks by the letter of the command line; the tables write ``nan`` for none."""

OVERHEAD_HEADING: Final = ("M", "n", "W", "U", "D", "L", "Lock-Free Rate", "Home-Queue Rate", "Speedup")
SPEEDUP_HEADING: Final = ("M", "n", "W", "U", "D", "L", "S", "Speedup")
EXPECTED: Final = (
    f"a CSV file with the heading `{','.join(OVERHEAD_HEADING)}` (idle lock overhead) or "
    f"`{','.join(SPEEDUP_HEADING)}` (speed-up); without `D` or `S` where `--depth` or `--strategy` says it"
)
STATED: Final = {"D": "depth", "S": "strategy"}
"""Columns that a table may lack, with the option that says them instead."""

RATE_UNIT: Final = "packets/ms"
MEDIANS_ONLY: Final = "the file holds one median per combination and no trials, so it gives no intervals"


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a table.

    Raises
    ------
    DataError
        Listing the first 20 lines that are wrong.
    """
    forms = {
        tuple(name for name in whole if name not in left_out): (form, left_out)
        for whole, form in ((OVERHEAD_HEADING, "idle lock overhead"), (SPEEDUP_HEADING, "speed-up"))
        for left_out in _left_out(whole)
    }
    heading, lines = headed_rows(source, ",", tuple(forms))
    form, left_out = forms[heading]
    given = {name: value for name, value in options.levels.items() if name in left_out}
    for name in left_out:
        if name not in given:
            source.refuse("line 1", f"no column `{name}`; state it with `--{STATED[name]}`")
    for name in options.levels:
        if name in heading:
            source.refuse("line 1", f"`--{STATED[name]}` is given, but the column `{name}` states it")
        if name not in left_out:
            source.refuse("line 1", f"`--{STATED[name]}` is given, but the headings of {form} state it")
    reader = _Reader(source, form)
    for line, row in lines:
        reader.take(line, {**dict(zip(heading, row, strict=False)), **given}, len(row) - len(heading))
    reader.problems.raise_if_any()
    reader.found.notes.append(MEDIANS_ONLY)
    return reader.found


def _left_out(heading: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Give the columns that a heading may lack."""
    optional = [name for name in STATED if name in heading]
    return [names for count in range(len(optional) + 1) for names in combinations(optional, count)]


class _Reader:
    """Turns rows into runs of cells; a rate that stands in several rows is taken once."""

    def __init__(self, source: Source, form: str) -> None:
        self.problems = ProblemList(source.path, EXPECTED)
        self.found = ForeignFile(form, facts={"tool": "parallel packets"})
        self._seen: dict[tuple[str, ...], str] = {}

    def take(self, line: int, row: dict[str, str], surplus: int) -> None:
        if surplus:
            self.problems.add(line, f"{abs(surplus)} field(s) {'too many' if surplus > 0 else 'too few'}")
            return
        levels = self._levels(line, row)
        if levels is None:
            return
        if self.found.form == "speed-up":
            self._add(line, levels, "speedup", "ratio", row["Speedup"])
            return
        free = {**levels, "strategy": STRATEGIES["L"], "lock": LOCKS["n"]}
        held = {**levels, "strategy": STRATEGIES["H"]}
        self._add(line, free, "rate", RATE_UNIT, row["Lock-Free Rate"])
        self._add(line, held, "rate", RATE_UNIT, row["Home-Queue Rate"])
        ratio = require_number(self.problems, line, "Speedup", row["Speedup"])
        if ratio is not None:
            printed = row["Speedup"]
            self.found.published.append(Published(held, "rate", "overhead", "ratio", float(ratio), printed))

    def _levels(self, line: int, row: dict[str, str]) -> dict[str, str] | None:
        faults = [
            f"{name} is `{row[name][:40]}`; expected a whole number from 1"
            for name in ("M", "n", "W", "D")
            if not _is_count(row[name])
        ]
        known: Sequence[tuple[str, dict[str, str]]] = (
            ("U", LOADS),
            ("L", LOCKS),
            *((("S", STRATEGIES),) if "S" in row else ()),
        )
        faults += [
            f"{name} is `{row[name][:40]}`; expected {', '.join(f'`{code}`' for code in codes)}"
            for name, codes in known
            if row[name] not in codes
        ]
        if faults:
            self.problems.add(line, "; ".join(faults))
            return None
        return {
            WORKLOAD: "packets",
            "load": LOADS[row["U"]],
            "mean_work": row["W"],
            "depth": row["D"],
            "strategy": STRATEGIES.get(row.get("S", ""), ""),
            "lock": LOCKS[row["L"]],
            "workers": row["n"],
            "duration_ms": row["M"],
        }

    def _add(self, line: int, levels: dict[str, str], metric: str, unit: str, text: str) -> None:
        number = require_number(self.problems, line, metric, text)
        if number is None:
            return
        key = (*levels.values(), metric)
        if key in self._seen:
            if self._seen[key] != text:
                self.problems.add(
                    line, f"{metric} of the same combination is `{self._seen[key]}` above and `{text}` here"
                )
            return
        self._seen[key] = text
        section = Section(metric, unit, float(number), 1, printed=text)
        self.found.runs.append(ForeignRun(levels, [section]))


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 1 <= len(text) <= 9 and int(text) > 0  # noqa: PLR2004 - int32


IMPORTER: Final = ForeignImporter(
    "packets",
    "tables of the parallel packets experiments (overhead.csv, speedup.csv)",
    EXPECTED,
    read,
    Alternatives.NONE,
    study=STUDY,
)
