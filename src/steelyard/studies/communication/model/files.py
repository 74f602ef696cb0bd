"""The models of a result folder as files: what predicts, and what a simulator is fed with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from steelyard.errors import unwritable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from steelyard.model.cost_model import CostModel

MODELS_NAME: Final = "models"
"""Folder in the result folder."""


def model_file(levels: Mapping[str, str], state: str) -> str:
    """Give the path of a model relative to the result folder.

    Examples
    --------
    >>> model_file({"transport": "tcp", "link": "rate=1gbit,delay=50us"}, "steady")
    'models/tcp-rate-1gbit-delay-50us.json'
    >>> model_file({"transport": "tcp", "link": "none"}, "slow")
    'models/tcp-slow.json'
    """
    parts = [levels["transport"]]
    if levels["link"] != "none":
        parts.append(levels["link"])
    if state != "steady":
        parts.append(state)
    name = "-".join(re.sub(r"[^A-Za-z0-9_]+", "-", part).strip("-") for part in parts)
    return f"{MODELS_NAME}/{name}.json"


def write_models(result: Path, models: Iterable[tuple[str, CostModel]]) -> None:
    """Write every model, and remove those of an earlier analysis; each file is whole or absent.

    Raises
    ------
    DataError
        If the folder cannot be written.
    """
    folder = result / MODELS_NAME
    try:
        folder.mkdir(exist_ok=True)
        names = set()
        for name, model in models:
            path = result / name
            temporary = path.with_suffix(".tmp")
            temporary.write_text(model.to_json(), encoding="utf-8")
            temporary.replace(path)
            names.add(path.name)
        for path in folder.glob("*.json"):
            if path.name not in names:
                path.unlink()
    except OSError as error:
        raise unwritable(folder, error, "check the rights of the folder") from error


def model_paths(result: Path) -> list[Path]:
    """Give the models of a result folder, sorted by name."""
    return sorted((result / MODELS_NAME).glob("*.json"))
