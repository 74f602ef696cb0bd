"""The calibration program: how many of its iterations take a given time on this host."""

from __future__ import annotations

import subprocess

from steelyard.run.programs import truth_path


def truth_iterations(cpu_ms: int = 50) -> int:
    """Give the iterations of the calibration program that take a given CPU time on this host.

    Parameters
    ----------
    cpu_ms : int
        CPU time [ms], 1 to 600000.

    Returns
    -------
    int
        Value for ``steelyard-truth --iterations``.
    """
    command = [str(truth_path()), "--calibrate", str(cpu_ms)]
    answer = subprocess.run(command, check=True, capture_output=True, timeout=60 + cpu_ms / 100)
    return int(answer.stdout)
