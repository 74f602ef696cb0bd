"""What the design needs to know of a workload."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class WorkloadInput:
    """One workload with one generated input, ready to be run.

    Parameters
    ----------
    workload : str
        Name as the source has it, ``exp/exp_float``.
    input : str
        Label of the input: its size, ``65536`` or ``65536_1048576``; a further input of the same size
        has its number behind a sign, ``65536#1``.
    command : tuple of str
        Program and arguments; placeholders as in `steelyard.model.Execution`.
    expected_output : str or None
        What it must print.
    environment : dict
        Beyond the common one.
    needs : frozenset of str
        Programs the isolation must offer (``python3``, ``java``).
    unavailable : str or None
        Why this host cannot run it anywhere.
    """

    workload: str
    input: str
    command: tuple[str, ...]
    expected_output: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    unavailable: str | None = None
