"""What is run: each command once in every block, started some times in a row."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from first_start.options import Options, settle
from steelyard.design.blocks import draw_batches
from steelyard.model import Cell, Execution, Plan
from steelyard.study import written_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.design.technology import Technology


def plan_here(options: Options, technologies: Mapping[str, Technology]) -> Plan:
    """Design the study: a batch is one command, its iterations are the starts."""
    asked = settle(options)
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    reason = None if technologies["bare"].available else technologies["bare"].reason
    cells = tuple(
        Cell(
            number,
            {"command": text},
            None
            if reason
            else Execution(
                "bare", tuple(shlex.split(text)), iterations=asked.starts, environment=environment
            ),
            reason,
        )
        for number, text in enumerate(asked.commands)
    )
    return Plan(
        study=asked.study,
        seed=asked.seed,
        factors={"command": asked.commands},
        cells=cells,
        batches=draw_batches(
            [cell.number for cell in cells if not cell.missing], blocks=asked.blocks, seed=asked.seed
        ),
        blocks=asked.blocks,
        options={
            "mode": "quick" if asked.quick else "full",
            "margin_percent": asked.margin_percent,
            "request": written_request(asked),
        },
    ).freeze()
