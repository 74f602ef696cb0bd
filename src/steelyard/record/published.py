"""Numbers that a foreign tool computed itself, kept beside the raw values: ``published.parquet``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from steelyard.record.schema import table_metadata
from steelyard.record.table_file import TableWriter, read_table, require_columns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.model.plan import Plan
    from steelyard.record.importers.foreign import Published

PUBLISHED_SCHEMA: Final = "steelyard/published/1"
PUBLISHED_NAME: Final = "published.parquet"

_FIELDS: Final = (
    pa.field("cell", pa.int32(), nullable=False),
    pa.field("block", pa.int32(), nullable=False),
    pa.field("metric", pa.string(), nullable=False),
    pa.field("statistic", pa.string(), nullable=False),
    pa.field("value", pa.float64(), nullable=False),
    pa.field("unit", pa.string(), nullable=False),
    pa.field("printed", pa.string(), nullable=False),
)


def write_published(
    result: Path, plan: Plan, generation: str, rows: Sequence[tuple[int, int, Published]]
) -> None:
    """Write what the tool published, sorted by cell; a result without has no such file.

    Parameters
    ----------
    rows : sequence of (cell, file, published)
        `file` is the position of the file in the import.
    """
    if not rows:
        return
    schema = pa.schema(list(_FIELDS), metadata=table_metadata(PUBLISHED_SCHEMA, plan.id, generation))
    with TableWriter(result / PUBLISHED_NAME, schema) as table:
        for cell, block, each in sorted(rows, key=lambda row: row[:2]):
            table.add(
                {
                    "cell": cell,
                    "block": block,
                    "metric": each.metric,
                    "statistic": each.statistic,
                    "value": each.value,
                    "unit": each.unit,
                    "printed": each.printed,
                }
            )


def read_published(result: Path) -> pa.Table | None:
    """Read ``published.parquet``; nothing where the result has none.

    Raises
    ------
    DataError
        If it is damaged or of another schema.
    """
    path = result / PUBLISHED_NAME
    if not path.exists():
        return None
    table = read_table(path, PUBLISHED_SCHEMA)
    require_columns(path, table, pa.schema(list(_FIELDS)))
    return table
