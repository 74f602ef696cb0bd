"""Every random stream of a study, derived from its one seed under a documented name."""

from __future__ import annotations

from enum import Enum

import numpy as np


class Purpose(Enum):
    """What a random stream is for; the value is its key under the study's seed.

    A key is never reused or renumbered: plans written by older versions would change.
    """

    BLOCK_ORDER = 1
    """Order of the cells within a block; one further key per block."""
    WORKLOAD_INPUT = 2
    """Generated inputs of workloads; one further key per input."""
    RESAMPLING = 3
    """Bootstrap and permutation in the analysis."""
    MESSAGE_SIZES = 4
    """Sizes of messages and the order of operations; one further key per replication."""
    ARRIVALS = 5
    """Arrivals of requests; one further key per block."""
    LAYOUT = 6
    """Where programs lie in memory; further keys say in which run."""


def generator(seed: int, purpose: Purpose, *keys: int) -> np.random.Generator:
    """Give the random stream of a purpose.

    Parameters
    ----------
    seed : int
        The study's seed, at least 0.
    purpose : Purpose
        What the numbers are for.
    *keys : int
        Further keys (block number, input number), each at least 0.

    Returns
    -------
    numpy.random.Generator
        PCG64, seeded by ``SeedSequence(seed, spawn_key=(purpose, *keys))``. Streams of different
        keys are independent, and a stream does not depend on how many others were drawn.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(purpose.value, *keys))
    return np.random.Generator(np.random.PCG64(sequence))
