"""The colocation study: whether a policy protects a service from best-effort jobs."""

from __future__ import annotations

from steelyard.study import Study

STUDY = Study(
    name="colocation",
    question="Does a scheduling policy protect a latency-critical service from best-effort jobs?",
    package=__name__,
    cell_values="cell_values:cell_values",
    duration="design:trials_seconds",
    run_inputs="fixtures:run_inputs",
    examples=(
        (
            "Which policies protect a service from best-effort jobs on this machine",
            "steelyard run colocation --quick",
        ),
    ),
    debian_packages=("qemu-system-x86",),
)
