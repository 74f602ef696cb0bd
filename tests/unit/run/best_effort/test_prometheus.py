"""The exposition is read by a parser of the format's grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from steelyard.run.best_effort.prometheus import Metric, exposition
from steelyard.run.best_effort.service import BestEffortStatus

SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\\\|\\"|\\n)*)"')
UNITS = ("_seconds", "_ratio", "_cpus", "_total", "_level", "_allowance")

SCHEDULER = {
    "active": True,
    "ejections": 2,
    "counters": {"scheduling_events": 11, "entry_runs": 3},
    "strictness": {"violation_ns": 1_500_000, "violations": 4, "events": 11, "beside_ns": 500_000},
    "parked_ns": 2_500_000_000,
}
GOVERNOR = {
    "allowance": "limited",
    "quota_cpus": 0.5,
    "pressure": 0.25,
    "pressure_alone": 0.125,
    "counters": {
        "looks": 9,
        "wakeups": 1,
        "throttles": 2,
        "parks": 1,
        "thaws": 1,
        "releases": 1,
        "limited_ns": 1_250_000_000,
        "parked_ns": 0,
    },
}


@dataclass
class Family:
    kind: str = ""
    text: str = ""
    samples: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)


def parse(text: str) -> dict[str, Family]:
    """Read text format 0.0.4; fails where it is broken."""
    assert text == "" or text.endswith("\n")
    families: dict[str, Family] = {}
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            _, _, name, words = line.split(" ", 3)
            assert name not in families, "HELP comes once and first"
            families[name] = Family(text=words)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in {"counter", "gauge"}
            assert not families[name].samples
            families[name].kind = kind
        else:
            found = SAMPLE.fullmatch(line)
            assert found is not None, line
            name, labels, value = found.groups()
            pairs = LABEL.findall(labels or "")
            assert ",".join(f'{key}="{text}"' for key, text in pairs) == (labels or "")
            unescaped = tuple((key, unescape(text)) for key, text in pairs)
            assert unescaped not in families[name].samples
            families[name].samples[unescaped] = float(value)
    return families


def unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)


def test_every_family_is_whole_and_named_by_its_unit() -> None:
    status = BestEffortStatus(SCHEDULER, GOVERNOR, "active", "steelyard_be")
    families = parse(exposition(status))
    for name, family in families.items():
        assert family.text and family.kind and family.samples, name  # noqa: PT018 - one thing: it is whole
        assert name.startswith("steelyard_best_effort_")
        assert name.endswith(UNITS)
        assert (family.kind == "counter") == name.endswith("_total"), name


def test_values_are_in_base_units() -> None:
    families = parse(exposition(BestEffortStatus(SCHEDULER, GOVERNOR, "active", "steelyard_be")))

    def value(name: str) -> float:
        return families[f"steelyard_best_effort_{name}"].samples[()]

    assert value("scheduler_parked_seconds_total") == 2.5
    assert value("strictness_violation_seconds_total") == 0.0015
    assert value("strictness_beside_seconds_total") == 0.0005
    assert value("governor_limited_seconds_total") == 1.25
    assert value("governor_pressure_ratio") == 0.25
    assert value("governor_pressure_alone_ratio") == 0.125
    events = families["steelyard_best_effort_scheduler_events_total"].samples
    assert events == {(("event", "scheduling_events"),): 11, (("event", "entry_runs"),): 3}


def test_the_guide_lists_every_metric() -> None:
    guide = (Path(__file__).parents[4] / "docs" / "guides" / "best-effort.md").read_text()
    families = parse(exposition(BestEffortStatus(SCHEDULER, GOVERNOR, "active", "steelyard_be")))
    listed = set(re.findall(r"`(steelyard_best_effort_\w+)", guide))
    assert listed == set(families)


def test_what_is_not_measured_is_left_out() -> None:
    status = BestEffortStatus({**SCHEDULER, "strictness": None}, {}, "active", "steelyard_be")
    assert not [name for name in parse(exposition(status)) if "strictness" in name]


def test_exactly_one_level_is_current() -> None:
    cases = {
        "strict": BestEffortStatus(SCHEDULER, {}, "active", "steelyard_be"),
        "idle": BestEffortStatus({}, GOVERNOR),
        "none": BestEffortStatus({}, {}, "foreign", "rusty"),
    }
    for level, status in cases.items():
        assert status.level == level
        samples = parse(exposition(status))["steelyard_best_effort_level"].samples
        assert [key for key, value in samples.items() if value == 1] == [(("level", level),)]
        assert sum(samples.values()) == 1


@given(st.text(), st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_whatever_a_text_holds_comes_back(label: str, text: str, value: float) -> None:
    metric = Metric("a_total", "counter", text, (({"event": label}, value),))
    family = parse(metric.write())["a_total"]
    assert family.samples == {(("event", label),): value}
    assert unescape(family.text) == text
