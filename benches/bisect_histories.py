"""How often `steelyard bisect` names the right commit where it says 95 %, beside `git bisect run`.

100 histories of 64 to 1024 commits with one step of 5 %, noise of 2 to 10 % of a run, a quarter of them each
normal, lognormal, with heavy tails, and normal on a machine that drifts; a twentieth of the commits do not
build. A build takes 20 s and a run 1 s; both are counted, not waited for. ``--histories N`` takes others.
``--oracle`` prints runs and minutes beside those of searches that know noise and step.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from statistical.planted_histories import MOST_BLOCKS, NOISES, by_oracle, planted, run_by_script, searched
from steelyard.analyse.culprit.choice import Costs
from steelyard.analyse.culprit.search import Search

if TYPE_CHECKING:
    from statistical.planted_histories import Outcome

SPREADS: Final = (0.02, 0.10)
"""Noise of one run; each history has one in between."""
_COLUMNS: Final = "right | runs | minutes |"
ORACLE_HEAD: Final = f"| noise | {_COLUMNS} known noise: {_COLUMNS} ends once: {_COLUMNS}"
HEAD: Final = "| noise | named | right | builds | minutes | `git bisect run`: right | builds | minutes |"


def row(kind: str, histories: int) -> str:
    """Give a row of the table."""
    spreads = np.geomspace(*SPREADS, histories).tolist()
    found = [searched(planted(at, kind, sd)) for at, sd in enumerate(spreads)]
    script = [run_by_script(planted(at, kind, sd)) for at, sd in enumerate(spreads)]
    named = [each for each in found if each.is_right is not None]
    cells = (
        kind,
        f"{len(named)} of {histories}",
        str(sum(bool(each.is_right) for each in named)),
        *_means(found),
        f"{sum(bool(each.is_right) for each in script)} of {histories}",
        *_means(script),
    )
    return f"| {' | '.join(cells)} |"


def oracle_row(kind: str, sd: float, histories: int) -> str:
    """Give how often, after how many runs and minutes, our search and those that know the noise are right."""
    cells = []
    for way in ("blocks", "known", "pooled"):
        cases = [planted(at, kind, sd) for at in range(histories)]
        found = [
            searched(each) if way == "blocks" else by_oracle(each, is_pooled=way == "pooled")
            for each in cases
        ]
        right = sum(bool(each.is_right) for each in found)
        runs = np.mean([each.machine.runs for each in cases])
        cells.append(f"{right} | {runs:.0f} | {np.mean([each.seconds for each in found]) / 60:.1f}")
    return f"| {kind}, {100 * sd:.0f} % | {' | '.join(cells)} |"


def _means(outcomes: list[Outcome]) -> tuple[str, str]:
    builds = np.mean([each.builds for each in outcomes])
    return f"{builds:.1f}", f"{np.mean([each.seconds for each in outcomes]) / 60:.1f}"


def decision_ms(size: int = 1024, blocks: int = 400) -> float:
    """Give the CPU time of a decision among many commits, after many blocks of 25 of them [ms]."""
    case = planted(1, "normal", 0.05, size=size)
    search = Search(case.history)
    while not search.differs:
        search.add_ends(*case.machine.block((-1, size - 1)))
    places = np.linspace(10, size - 10, 25).astype(int)
    for at in range(blocks):
        commit = int(places[at % places.size])
        search.add(commit, *case.machine.block((-1, commit, size - 1)))
    taken = []
    for _ in range(7):
        began_s = time.process_time()
        search.choose(search.know(), Costs(20.0, 3.0))
        taken.append(time.process_time() - began_s)
    return 1000 * float(np.median(taken))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--oracle", action="store_true")
    asked = parser.parse_args()
    histories = asked.histories
    if asked.oracle:
        sys.stdout.write(f"{ORACLE_HEAD}\n|{'---|' * 10}\n")
        for kind, sd in ((kind, sd) for kind in ("normal", "drift") for sd in (0.02, 0.05)):
            sys.stdout.write(f"{oracle_row(kind, sd, histories)}\n")
            sys.stdout.flush()
        return
    sys.stdout.write(f"{HEAD}\n|{'---|' * 8}\n")
    for kind in NOISES:
        sys.stdout.write(f"{row(kind, histories // len(NOISES))}\n")
        sys.stdout.flush()
    sys.stdout.write(
        f"\nat most {MOST_BLOCKS} blocks; CPU time of a decision among 1024: {decision_ms():.0f} ms\n"
    )


if __name__ == "__main__":
    main()
