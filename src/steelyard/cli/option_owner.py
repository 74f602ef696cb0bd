"""Options of the command line belong to studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.cli.messages import FLAGS
from steelyard.errors import UsageError
from steelyard.study import studies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.study import Study


def require_taken(chosen: Study, given: Mapping[str, object]) -> None:
    """Refuse an option of the command line that is of another study.

    Parameters
    ----------
    chosen : Study
        The study.
    given : mapping
        Options by key of the study file; ``None`` stands for one that was not given.

    Raises
    ------
    UsageError
        Naming the studies that take it.
    """
    for option, value in given.items():
        if value is not None and option not in chosen.options.model_fields:
            takers = ", ".join(
                f"`{name}`" for name, each in studies().items() if option in each.options.model_fields
            )
            flag = FLAGS.get(option, option)
            message = f"`--{flag}` is not an option of the study `{chosen.name}`; it is of {takers}"
            raise UsageError(message)
