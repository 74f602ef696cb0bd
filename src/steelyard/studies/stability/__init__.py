"""The stability study: whether timings can be trusted under load and isolation."""

from __future__ import annotations

from steelyard.study import Study

STUDY = Study(
    name="stability",
    question=(
        "Which isolation technology, and how many parallel workers, before my timings stop being trustworthy?"
    ),
    package=__name__,
    duration="duration:plan_seconds",
    examples=(("A first look, a few minutes", "steelyard run stability --quick"),),
    debian_packages=(
        "gcc",
        "libc6-dev",
        "default-jdk-headless",
        "bubblewrap",
        "crun",
        "podman",
        "systemd-container",
    ),
    is_input_calibrated=True,
    has_programs_as_cells=True,
    maps_cells=True,
)
