"""Engines of containers: started once for a study, used by all its runs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from steelyard.errors import CapabilityError
from steelyard.run.isolation.attempt import installed
from steelyard.run.isolation.docker import REPAIR, DockerEngine

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


@contextmanager
def container_engines(technologies: Collection[str]) -> Iterator[dict[str, Any]]:
    """Start the engines that technologies need, and end them.

    Parameters
    ----------
    technologies : collection of str
        Names; only ``docker`` needs an engine. The host's is used where it answers.

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
    if "docker" not in technologies:
        yield {}
        return
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
