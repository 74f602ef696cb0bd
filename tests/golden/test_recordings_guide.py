"""The tables of docs/guides/recordings.md: figures of the source, and what the verbs say of its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from golden.test_communication_source import rebuilt_section_5
from steelyard.cli import execute
from steelyard.model.cost_model import read_cost_model
from steelyard.model.finding import read_findings

if TYPE_CHECKING:
    from steelyard.model import FindingSet
    from steelyard.model.cost_model import CostModel

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/guides/recordings.md").read_text(encoding="utf-8")
GRIFFON = ROOT.parent / "shared/data/communication/griffon"
GIGABIT_BYTES_PER_S = 1.25e8


def imported(folder: Path, *words: str) -> tuple[CostModel, FindingSet]:
    assert execute(["import", *words, "--out", str(folder)]) == 0
    assert execute(["analyse", str(folder)]) == 0
    (path,) = folder.glob("models/*.json")
    return read_cost_model(path), read_findings(folder / "findings.json")


def fitted(capsys: pytest.CaptureFixture[str], *words: str) -> list[list[float]]:
    """Give the coefficients of each piece."""
    capsys.readouterr()
    assert execute(["fit", *words, "--json"]) == 0
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return [[row["estimate"] for row in piece["coefficients"]] for piece in content["pieces"]]


def switches(findings: FindingSet) -> str:
    places = [each.estimates["at"] for each in findings.of("boundary") if each.verdict == "protocol"]
    return ", ".join(f"{at.value:.0f} ({at.low:.0f} to {at.high:.0f})" for at in places)


def share_of_gigabit(model: CostModel) -> str:
    return f"{100 * model.bandwidth_bytes_per_s / GIGABIT_BYTES_PER_S:.0f} %"


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


@pytest.mark.needs_recorded_data
def test_section_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(GRIFFON / "griffon_skampi_pt2pt.ski.dat")
    plain = fitted(capsys, source, "--x", "1", "--y", "3", "--breaks", "100,20000")
    logs = fitted(capsys, source, "--x", "1", "--y", "3", "--breaks", "100,20000", "--log")
    model, findings = imported(tmp_path / "r", "skampi", source)
    for expected in (
        row("below 100 B", "109.72759 + 0.01187 n us", f"{plain[0][0]:.5f} + {plain[0][1]:.5f} n us"),
        row("100 to 20000 B, log-log slope", "0.30382", f"{logs[1][1]:.5f}"),
        row("above 20000 B, log-log slope", "0.874772", f"{logs[2][1]:.6f}"),
        row("half a round trip of 1 byte", "109.7 us / 2", f"{model.predict(1) * 1e6:.2f} us"),
        row("switch", "none named", switches(findings)),
        row("bandwidth", "57.8 MB/s (not halved)", f"{share_of_gigabit(model)} of 1 Gbit/s"),
    ):
        assert expected in PAGE


@pytest.mark.slow
@pytest.mark.needs_recorded_data
def test_section_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(GRIFFON / "pingpong-in.dat")
    ((base, slope),) = fitted(capsys, source, "--x", "1", "--y", "2")
    model, findings = imported(tmp_path / "r", "messages", source, "--unit", "us")
    last = model.curves["delay"][-1]
    for expected in (
        row("one line through all", "292.1 + 0.008565 n us", f"{base:.1f} + {slope:.6f} n us"),
        row("gaps", "near 1400 (is it real?), 10000 and 65000", switches(findings)),
        row("change of slope", "near 220000", f"{last.low:.0f}"),
        row("largest messages", "a line", f"{last.base * 1e6:.1f} + {last.slope * 1e6:.6f} n us"),
        row("bandwidth", "", f"{share_of_gigabit(model)} of 1 Gbit/s"),
    ):
        assert expected in PAGE
    assert "sent in the order of their sizes" in str(findings.of("recording")[0].facts["cannot"])


@pytest.mark.needs_recorded_data
def test_section_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(GRIFFON / "reconstructed-section4.2-large.csv")
    ((base, slope),) = fitted(capsys, source, "--x", "count", "--y", "time_us")
    model, findings = imported(tmp_path / "r", "messages", source)
    (piece,) = model.curves["delay"]
    for expected in (
        row("large messages", "3343 + 0.008505 n us", f"{base:.0f} + {slope:.6f} n us"),
        row("the model's line", "", f"{piece.base * 1e6:.0f} + {piece.slope * 1e6:.6f} n us"),
        row("bandwidth", "around 112 MB/s", f"{model.bandwidth_bytes_per_s / 1e6:.0f} MB/s"),
    ):
        assert expected in PAGE
    assert "too few messages for a prediction to be judged" in str(
        findings.of("recording")[0].facts["cannot"]
    )


@pytest.mark.slow
def test_section_5(tmp_path: Path) -> None:
    size, seconds = rebuilt_section_5()
    # By turns, as they were sent: small and large messages follow each other.
    order = sorted(range(len(size)), key=lambda at: (at * 7919) % len(size))
    lines, now = [], 1.0
    for at in order:
        lines.append(
            f"{size[at]:.0f} MPI_Send {now:.6f} {now + seconds[at]:.6f} MPI_Recv {now:.6f} {now + 1:.6f}"
        )
        now += 1.5
    path = tmp_path / "zoo.dat"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    model, findings = imported(tmp_path / "r", "zoo", str(path))
    first, *_, last = model.curves["delay"]
    sends = {n: f"{model.predict(n) * 1e6:.1f} us" for n in (1000, 30_000)}
    for expected in (
        row("1000 B", f"{4.219 + 1.112:.1f} us", sends[1000]),
        row("30000 B", f"{4.219 + 33.36:.1f} us", sends[30_000]),
        row("switch", "65000", switches(findings)),
        row(
            "large messages", "415.5 + 0.008497 n us", f"{last.base * 1e6:.1f} + {last.slope * 1e6:.6f} n us"
        ),
        row("bandwidth", "94 % of 1 Gbit/s", f"{share_of_gigabit(model)} of 1 Gbit/s"),
    ):
        assert expected in PAGE
    assert first.base > 0
