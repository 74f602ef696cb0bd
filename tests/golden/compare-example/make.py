"""Measure the example of docs/guides/compare.md and keep its findings: python make.py."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from steelyard.cli import execute

HERE = Path(__file__).resolve().parent
SCRIPTS = {"sort-old": "sort -u", "sort-new": "sort -u -f"}


def main() -> None:
    """Compare two ways to sort words, as the guide shows it."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rng = np.random.default_rng(1)
        words = ("".join(map(chr, rng.integers(97, 123, size))) for size in rng.integers(2, 12, 20_000))
        Path("words.txt").write_text("\n".join(words) + "\n", encoding="ascii")
        for name, command in SCRIPTS.items():
            Path(name).write_text(f'#!/bin/sh\nexec {command} "$1"\n', encoding="utf-8")
            Path(name).chmod(0o755)
        execute(["compare", "--out", "result", "./sort-old words.txt", "./sort-new words.txt"])
        shutil.copy("result/findings.json", HERE / "findings.json")


if __name__ == "__main__":
    main()
