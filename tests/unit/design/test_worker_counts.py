from __future__ import annotations

import pytest

from steelyard.design.worker_counts import HostFacts, worker_counts
from steelyard.errors import DesignError


@pytest.mark.parametrize(
    ("cpus", "cores", "caches", "expected"),
    [
        (1, 1, 1, (1, 2)),
        (2, 2, 1, (1, 2, 4)),
        (8, 4, 1, (1, 2, 4, 8)),
        (64, 64, 8, (1, 8, 32, 64, 128)),
    ],
)
def test_loads_are_one_per_cache_half_all_and_twice_the_cores(
    cpus: int, cores: int, caches: int, expected: tuple[int, ...]
) -> None:
    assert worker_counts(HostFacts(cpus, cores, caches)) == expected


def test_a_host_with_more_cores_than_cpus_is_refused() -> None:
    with pytest.raises(DesignError, match="1 CPUs, 2 cores"):
        HostFacts(cpu_count=1, core_count=2)
