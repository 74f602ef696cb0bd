"""The replication study: whether a result holds elsewhere, in a container, and what makes it fluctuate."""

from __future__ import annotations

from steelyard.study import Study

STUDY = Study(
    name="replication",
    question="Does a result hold on other devices and in containers, and what makes it fluctuate?",
    package=__name__,
    cell_values="cell_values:cell_values",
    duration="duration:plan_seconds",
    run_inputs="fixtures:run_inputs",
    selection="findings.until_decided:selection_of",
    examples=(
        (
            "Whether results hold in a container, and what makes them fluctuate",
            "steelyard run replication --quick",
        ),
    ),
    debian_packages=("default-jdk-headless", "maven", "postgresql", "crun", "util-linux"),
    build_commands=("bash /package/scripts/deps-replication.sh --quiet",),
    workloads=("build", "java", "python"),
    compares_hosts=True,
)
