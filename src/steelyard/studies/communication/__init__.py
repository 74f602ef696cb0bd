"""The communication study: what moving n bytes costs, as a model that a simulator can use."""

from __future__ import annotations

from steelyard.study import Study

STUDY = Study(
    name="communication",
    question="What does moving n bytes cost, where does that change, and with which noise?",
    package=__name__,
    run_inputs="fixtures:run_inputs",
    run_hosts="pairs:hosts_of",
    lost_host="lost_nodes:lost_node",
    follow_up="simulation.simulated:follow",
    cleanup="transport.link_cleanup:remove_abandoned_links",
    result_comparison="result_comparison:compare_folders",
    examples=(
        (
            "What moving n bytes over TCP costs on this machine",
            "steelyard run communication --transport tcp --quick",
        ),
    ),
    debian_packages=("openmpi-bin", "libopenmpi-dev", "mpich", "gcc", "libc6-dev", "iproute2"),
    maps_cells=True,
)
