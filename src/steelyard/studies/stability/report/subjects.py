"""Names and colours of the stability study, the same in every part of the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.report.charts.theme import assign_colours
from steelyard.studies.stability.report.data import setup_label, setup_order, workload_label

if TYPE_CHECKING:
    from steelyard.studies.stability.report.data import RecordedTables

COLOURS: Final = {
    "bare": "#6B7280",
    "sandbox": "#0072B2",
    "isolate": "#3C97D3",
    "docker": "#B98C00",
    "docker-bare": "#B98C00",
    "docker-sandbox": "#A15C00",
    "docker-isolate": "#A15C00",
    "podman": "#C76B9C",
    "crun": "#009E73",
    "runc": "#7A8B00",
    "bubblewrap": "#8C6BB1",
    "nspawn": "#1B9E9E",
    "vm": "#C93F12",
    "vbox-bare": "#C93F12",
    "vm-sandbox": "#BB4430",
    "vbox-isolate": "#BB4430",
}
"""Relatives have neighbouring hues: a technology and the same with a sandbox inside."""


@dataclass(frozen=True, slots=True)
class Subjects:
    """What was measured, in the order of the design.

    Parameters
    ----------
    isolations, setups, workloads : tuple of str
        Labels that occur in the recorded runs.
    metrics : frozenset of str
        Metrics that were recorded.
    workers : tuple of int
        Numbers of workers, ascending.
    """

    isolations: tuple[str, ...]
    setups: tuple[str, ...]
    workloads: tuple[str, ...]
    metrics: frozenset[str]
    workers: tuple[int, ...]

    @property
    def colours(self) -> dict[str, str]:
        """One colour per isolation."""
        return assign_colours(self.isolations, COLOURS)


def subjects_of(recorded: RecordedTables) -> Subjects:
    """Give what was measured."""
    cells = recorded.runs.select(list(_KEYS)).group_by(list(_KEYS)).aggregate([]).to_pylist()
    design = recorded.plan.factors.get("isolation", ()) if recorded.plan else ()
    found = {row["isolation"] for row in cells}
    known = [name for name in (*design, *COLOURS) if name in found]
    isolations = tuple(dict.fromkeys([*known, *sorted(found)]))
    return Subjects(
        isolations=isolations,
        setups=tuple(sorted({setup_label(row) for row in cells}, key=setup_order)),
        workloads=tuple(sorted({workload_label(row["workload"], row.get("input")) for row in cells})),
        metrics=frozenset(recorded.measurements["metric"].unique().to_pylist()),
        workers=tuple(sorted({int(row["setup_size"]) for row in cells})),
    )


_KEYS: Final = ("isolation", "setup_type", "setup_size", "affinity", "workload", "input")
