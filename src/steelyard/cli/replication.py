"""Options of the command line that say which experiments the replication study executes, and where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - cyclopts reads annotations at run time
from typing import TYPE_CHECKING

from cyclopts import Parameter

from steelyard.cli.verb_app import options_of

if TYPE_CHECKING:
    from collections.abc import Mapping


@Parameter(name="*", group=options_of("replication"))
@dataclass(frozen=True, slots=True)
class Replication:
    """Experiments of the replication study.

    Parameters
    ----------
    experiments
        Experiments by commas: e1 (JMH), e2 (overhead of monitoring), e3 (web service),
        e4 (macro benchmark), causes (cause tree). By default all; with `--quick` e1, e2, e3 and causes.
    configurations
        What of them is measured, by commas; `steelyard plan replication` lists them.
    devices
        TOML file of devices; by default this host, and two devices that it plays.
    containers
        Container technology: auto (the first that works), none, docker, podman or crun.
    causes
        Interventions of the cause tree by commas, in their order; all by default.
    planted
        A cause planted into the cause tree: none, background, allocation or migrations.
    """

    experiments: str | None = None
    configurations: str | None = None
    devices: Path | None = None
    containers: str | None = None
    causes: str | None = None
    planted: str | None = None

    def given(self) -> Mapping[str, object]:
        """Give what was said, by key of the study file."""
        return {
            "experiments": _words(self.experiments),
            "configurations": _words(self.configurations),
            "devices": None if self.devices is None else str(self.devices),
            "containers": self.containers,
            "causes": _words(self.causes),
            "planted": self.planted,
        }


def _words(text: str | None) -> tuple[str, ...] | None:
    """Read words separated by commas.

    Examples
    --------
    >>> _words("e1, e2,"), _words(None)
    (('e1', 'e2'), None)
    """
    return None if text is None else tuple(word.strip() for word in text.split(",") if word.strip())


NO_REPLICATION = Replication()
