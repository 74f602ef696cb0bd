"""What was drawn into ``figures/``: what each figure shows and the hash of each file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from steelyard.report.page import Figure

DRAWN_SCHEMA: Final = "steelyard/figures/1"
DRAWN_NAME: Final = "figures.json"


@dataclass(frozen=True, slots=True)
class Drawn:
    """The content of ``figures/figures.json``.

    Parameters
    ----------
    shows : dict
        SHA-256 of the specification with all data, by figure: what it shows, however it is drawn.
    files : dict
        SHA-256 of each file, by name.
    """

    shows: dict[str, str]
    files: dict[str, str]
    schema: str = DRAWN_SCHEMA

    def write(self, folder: Path) -> None:
        """Write the file whole; the folder of the figures exists."""
        path = folder / DRAWN_NAME
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)


def hash_of_figure(figure: Figure) -> str:
    """Give the SHA-256 of what a figure shows: title, specification, and every row of its data."""
    content = [
        figure.id,
        figure.title,
        figure.spec,
        {name: data.rows() for name, data in figure.datasets.items()},
    ]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def drawn_of(figures: Iterable[Figure], paths: Iterable[Path]) -> Drawn:
    """Give the record of figures that were just drawn into some files."""
    return Drawn(
        {figure.id: hash_of_figure(figure) for figure in figures},
        {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths},
    )
