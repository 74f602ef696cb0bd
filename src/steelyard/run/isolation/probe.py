"""The honest probe: start a worker of a technology, run one program in it, take everything away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.errors import SteelyardError
from steelyard.model import RunSpec
from steelyard.run.executor.worker import Worker
from steelyard.run.isolation.interface import Availability
from steelyard.run.session import WORK, Session, Site, open_session

if TYPE_CHECKING:
    from steelyard.model import RunOutcome
    from steelyard.run.isolation.interface import Isolation

RUN_TIMEOUT_S: Final = 20.0


def try_worker(technology: Isolation, version: str | None, repair: str | None) -> Availability:
    """Run one program with a technology and judge by what comes back.

    Parameters
    ----------
    technology : Isolation
        What to try.
    version : str or None
        What to call it if it works.
    repair : str or None
        The command to name if it does not.
    """
    try:
        with open_session(None, technology.sweep) as session:
            outcome = _execute_one(technology, session)
    except SteelyardError as error:
        return Availability.no(error.message, error.hint or repair, version)
    if outcome.status.is_failure:
        reason = outcome.message or f"a probe run ended as `{outcome.status}`"
        return Availability.no(reason, repair, version)
    return Availability.yes(version)


def _execute_one(technology: Isolation, session: Session) -> RunOutcome:
    site = Site(session, technology.name, worker=0)
    with Worker(technology, site) as worker:
        worker.start()
        spec = RunSpec(id="probe", command=(str(technology.programs(site) / WORK), "--version"))
        return worker.execute(spec, timeout_s=RUN_TIMEOUT_S)[0]
