"""The published results this study repeats: how their files are known, and their machine."""

from __future__ import annotations

from typing import Final

OVERHEAD_SHA256: Final = "e527d60f261c6a3b9feb6cae7cb095a1503cd67dbd9214a9ec2c10a6dd9bb4a3"
SPEEDUP_SHA256: Final = "88eab8cbd9d9a4c5596b5d4211b814dacdbf1dbe9b4cde94c27fa17d1da62f1b"
FILES: Final = frozenset({OVERHEAD_SHA256, SPEEDUP_SHA256})
"""SHA-256 of ``overhead.csv`` and ``speedup.csv`` at depth 32."""

CORES: Final = 14
"""SOURCE: A. Miller, CMSC 23010 HW3b write-up, 29 May 2021: "the number of cores in the system (14)"."""
