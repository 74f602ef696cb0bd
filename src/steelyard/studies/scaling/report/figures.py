"""Figures of the scaling report: curves with the ideal line, bars of overheads with a line at one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.report.charts.theme import assign_colours
from steelyard.report.dataset import dataset
from steelyard.report.page import Figure
from steelyard.studies.scaling.findings.strategy import contender_of
from steelyard.studies.scaling.packets import UNIFORM
from steelyard.studies.scaling.report.charts import PANEL_WIDTH, overhead_bars, speedup_curves

if TYPE_CHECKING:
    from steelyard.model.finding import Finding, FindingSet

    Row = dict[str, str | int | float | bool | None]

IDEAL: Final = "ideal"
PROGRAM: Final = "this program"
MENUS: Final[tuple[str, ...]] = ("load", "depth")


def speedup_figure(findings: FindingSet) -> Figure | None:
    """Give speed-up over workers, one panel per mean work."""
    chosen = [
        finding
        for finding in findings.of("speedup")
        if _is_of_curve(finding, findings) and finding.estimates["speedup"].value is not None
    ]
    if not chosen:
        return None
    menus: dict[str, list[str]] = {
        name: sorted({finding.subject[name] for finding in chosen}, key=_menu_order)
        for name in MENUS
        if name in chosen[0].subject
    }
    rows = [_row(finding, menus) for finding in chosen]
    panels = sorted(dict.fromkeys(str(row["panel"]) for row in rows), key=_panel_order)
    workers = sorted({int(row["workers"] or 0) for row in rows})
    names = list(dict.fromkeys(str(row["contender"]) for row in rows))
    cores = chosen[0].facts["cores"]
    rows += _ideal(rows, cores if isinstance(cores, int) else None)
    return Figure(
        id="speedup_over_workers",
        title="Speed-up over workers",
        caption="The dashed line is ideal, a speed-up equal to the workers; the grey upright "
        "line stands at the number of cores, to its right workers share them. Strokes and bands are 95 % "
        "intervals of each number of workers.",
        alternative="Lines of speed-up over workers with the ideal line, a panel per mean work",
        spec=speedup_curves(assign_colours(names, {}), menus, panels, workers),
        datasets={"speedups": dataset(rows)},
        panel_width=PANEL_WIDTH,
    )


def _is_of_curve(finding: Finding, findings: FindingSet) -> bool:
    """Whether there are several numbers of workers: the lock experiment has one."""
    if "mean_work" not in finding.subject:
        return True
    return any(
        other.subject["mean_work"] == finding.subject["mean_work"] and other.subject["workers"] != "1"
        for other in findings.of("speedup")
    )


def _row(finding: Finding, menus: dict[str, list[str]]) -> Row:
    of = finding.subject
    speedup, shy = finding.estimates["speedup"], finding.estimates["shy"]
    return {
        **{name: of[name] for name in menus},
        "panel": _panel(of),
        "contender": contender_of(of) if "strategy" in of else PROGRAM,
        "workers": int(of["workers"]),
        "speedup": speedup.value,
        "low": speedup.low,
        "high": speedup.high,
        "shy": shy.value,
        "cores": None,
        "is_ideal": False,
    }


def _ideal(rows: list[Row], cores: int | None) -> list[Row]:
    """Give the ideal line, as far as it is needed, once per panel and option of the menus."""
    keys = [name for name in (*MENUS, "panel") if name in rows[0]]
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in keys), []).append(row)
    found: list[Row] = []
    for members in groups.values():
        largest = max(float(row["speedup"] or 0) for row in members)
        counts = sorted({int(row["workers"] or 0) for row in members} | ({cores} if cores else set()))
        last = next((count for count in counts if count >= largest), counts[-1])
        found.extend(
            {
                **members[0],
                "contender": IDEAL,
                "workers": count,
                "speedup": float(count),
                "low": None,
                "high": None,
                "shy": 0.0,
                "cores": cores,
                "is_ideal": True,
            }
            for count in sorted({*counts, last})
            if count <= max(last, cores or 0)
        )
    return found


def overhead_figure(findings: FindingSet) -> Figure | None:
    """Give the bars of the overhead of an idle lock."""
    rows: list[Row] = [
        {
            "mean_work": finding.subject["mean_work"],
            "lock": f"{finding.subject['lock']}, depth {finding.subject['depth']}",
            "overhead": finding.estimates["overhead"].value,
            "low": finding.estimates["overhead"].low,
            "high": finding.estimates["overhead"].high,
            "verdict": finding.verdict,
        }
        for finding in findings.of("overhead")
        if finding.subject["load"] == UNIFORM
    ]
    if not rows:
        return None
    locks = list(dict.fromkeys(str(row["lock"]) for row in rows))
    works = sorted({str(row["mean_work"]) for row in rows}, key=int)
    return Figure(
        id="lock_overhead",
        title="What a lock costs that nobody contends for, uniform load",
        caption="Rate of LockFree over that of HomeQueue with one worker. On the line at "
        "1 the "
        "lock costs nothing; strokes are 95 % intervals.",
        alternative="Bars of the overhead of an idle lock by mean work, with a line at one",
        spec=overhead_bars(assign_colours(locks, {}), works),
        datasets={"overheads": dataset(rows)},
    )


def _panel(subject: dict[str, str]) -> str:
    """Name a panel by all that tells it from others: a picture has no menus."""
    if "mean_work" not in subject:
        return PROGRAM
    return f"W = {subject['mean_work']}, {subject['load']}, depth {subject['depth']}"


def _panel_order(title: str) -> int:
    digits = title.partition(",")[0].rpartition(" ")[2]
    return int(digits) if digits.isdecimal() else 0


def _menu_order(option: str) -> tuple[int, str]:
    """Uniform before exponential, deep before shallow."""
    return (-int(option), "") if option.isdecimal() else (0 if option == "uniform" else 1, option)
