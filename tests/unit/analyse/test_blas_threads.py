"""Whatever is computed of many values: as many threads as the machine has CPUs, and the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys

PROGRAM = """
import json
import numpy as np
from steelyard.analyse.cost_curve.median_line import median_piece
from steelyard.analyse.cost_curve.modes import two_modes
from steelyard.analyse.linear.correlation import pearson, spearman
from steelyard.analyse.linear.deviations import _correlation

draw = np.random.default_rng(1)
x = np.sort(draw.uniform(1, 1e6, 30_000))
y = (5e-6 + 2e-10 * x) * draw.lognormal(0, 0.1, x.size)
line, power = (median_piece(x, y, kind) for kind in ("line", "power"))
modes = two_modes(np.concatenate([y, y * 40]))
pairs = [pearson(x, y), spearman(x, y)]
found = [line.base, line.slope, power.base, power.slope, _correlation(x, y)]
found += [each.middle for each in modes] + [each.value for each in pairs]
print(json.dumps([float(each).hex() for each in found]))
"""


def test_the_number_of_threads_of_blas_does_not_change_a_bit() -> None:
    answers = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for threads in ("1", "2")
    ]
    assert len(json.loads(answers[0])) == 9
    assert answers[0] == answers[1]
