"""Engines of containers: started once for a study, used by all its runs."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from steelyard.errors import CapabilityError
from steelyard.run.isolation.attempt import installed
from steelyard.run.isolation.docker import REPAIR, DockerEngine
from steelyard.studies.replication.devices.container_cleanup import sweep_places

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


@contextmanager
def container_engines(technologies: Collection[str]) -> Iterator[dict[str, Any]]:
    """Start the engines that technologies need, and end them; sweep before and after.

    Parameters
    ----------
    technologies : collection of str
        Names; only ``docker`` needs an engine. The host's is used where it answers. What killed conductors
        left is swept whether there is one or not.

    Yields
    ------
    dict
        What runs find as ``engines`` in ``experiment.json``: by technology `client` (words), `image`,
        `group` (parent of its control groups, or empty) and `is_own`.

    Raises
    ------
    CapabilityError
        If no engine answers and none can be started.
    """
    sweep_places()
    try:
        with ExitStack() as started:
            yield started.enter_context(_docker()) if "docker" in technologies else {}
    finally:
        sweep_places()


@contextmanager
def _docker() -> Iterator[dict[str, Any]]:
    if installed("docker") is None:
        message = "a container by `docker` needs `docker`, which is not installed"
        raise CapabilityError(message, hint=REPAIR, code="capability.container")
    engine = DockerEngine()
    try:
        image = engine.image()
        facts = {
            "client": engine.client,
            "image": image,
            "group": engine.group if engine.is_own else "",
            "is_own": engine.is_own,
        }
        yield {"docker": facts}
    finally:
        engine.stop()
