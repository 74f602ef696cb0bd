"""What the exit check costs in a guest, measured, kept, and written into a page of the documentation.

``python -m golden.exit_cost`` (from ``tests/``; ``make exit-cost-page`` does it). The time of the guest is
counted in instructions, so every machine measures the same.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from steelyard.cli import execute
from steelyard.model.finding import read_findings
from steelyard.report.tables import to_markdown
from steelyard.studies.colocation.report.tables import EXIT_COSTS

FINDINGS: Final = Path(__file__).resolve().parent / "exit-cost" / "findings.json"
PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "best-effort-class.md"
MARKS: Final = ("<!-- exit check: measured -->\n", "<!-- exit check: end -->")
STUDY: Final = """
study = "colocation"
in_vm = true
vm_time = "instructions"
vcpus = 4
policies = ["be"]
loads = [50, 70]
repetitions = 1
baseline_ms = 500
best_effort_ms = 4000
"""


def measure() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file, result = Path(folder) / "study.toml", Path(folder) / "result"
        file.write_text(STUDY, encoding="utf-8")
        if execute(["run", "colocation", "--study-file", str(file), "--out", str(result)]):
            raise SystemExit(1)
        shutil.copy(result / "findings.json", FINDINGS)


def rendered(text: str) -> str:
    """Give the page with the table of the report, as the findings that are kept have it."""
    begin, end = MARKS
    table = EXIT_COSTS.build(read_findings(FINDINGS).of("exit_cost"))
    if table is None:
        message = f"`{FINDINGS}` has no exit check that was timed"
        raise SystemExit(message)
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}{to_markdown(table)}{end}{after}"


if __name__ == "__main__":
    measure()
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
