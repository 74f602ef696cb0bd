"""Two real hosts, from a hostfile: looked at before anything starts, entered by ssh.

::

    with Hosts(Path("hosts")) as hosts:
        hosts.require_program("steelyard-comm")
        transport.invocations(plan, out, options, hosts.place())
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Self

from steelyard.errors import CapabilityError
from steelyard.run.hosts.hostfile import first_pair, read_hostfile
from steelyard.run.hosts.ssh import Reached, reach, require_program, ssh_words
from steelyard.run.isolation.attempt import first_line
from steelyard.studies.communication.transport import ssh_agent
from steelyard.studies.communication.transport.interface import Place
from steelyard.studies.communication.transport.link_cleanup import folder_of, new_key, remove_abandoned_links

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType


class Hosts:
    """The two hosts the ranks run on; a context manager.

    Parameters
    ----------
    path : Path
        Hostfile of Open MPI or MPICH; its first two hosts are taken.
    ssh_options : sequence of str
        Further words for ssh, e.g. ``-F FILE``.

    Raises
    ------
    UsageError
        On entry, if the hostfile is missing, wrong, or names one host only.
    CapabilityError
        On entry, naming every host that cannot be reached without a password, with the next step.
    """

    def __init__(self, path: Path, *, ssh_options: Sequence[str] = ()) -> None:
        self._path = path
        self._options = tuple(ssh_options)
        self._folder = folder_of(new_key())
        self._reached: tuple[Reached, ...] = ()

    @property
    def reached(self) -> tuple[Reached, Reached]:
        """Both hosts; index is the rank."""
        first, second = self._reached
        return first, second

    @property
    def agent(self) -> Path:
        """``ssh`` with the pinned options, for transports that start their second endpoint themselves."""
        return self._folder / "agent"

    @property
    def hostfile(self) -> Path:
        """Both hosts, one process each, as a file for ``mpirun --hostfile`` of Open MPI."""
        return self._folder / "hosts"

    def require_program(self, program: str) -> None:
        """Refuse hosts that lack a program.

        Raises
        ------
        CapabilityError
            Naming the host.
        """
        for one in self._reached:
            require_program(one, program, self._options)

    def place(self) -> Place:
        """Give the hosts as a transport takes them."""
        first, second = self.reached
        return Place(
            addresses=(first.address, second.address),
            enter=(self._enter(first), self._enter(second)),
            agent=self.agent,
            hostfile=self.hostfile,
        )

    def facts(self) -> dict[str, object]:
        """Give what is known of the hosts, for the provenance."""
        return {"hosts": [asdict(one) for one in self._reached], "ssh": first_line(["ssh", "-V"])}

    def __enter__(self) -> Self:
        """Look at the hosts and write the files that lead to them."""
        pair = first_pair(read_hostfile(self._path), str(self._path))
        remove_abandoned_links()
        reached, refused = [], []
        for host in pair:
            try:
                reached.append(reach(host, self._options))
            except CapabilityError as error:
                refused.append(error)
        if refused:
            # Both hosts may need a hand: say so at once.
            message = "; ".join(error.message for error in refused)
            hint = "; ".join(dict.fromkeys(error.hint for error in refused if error.hint))
            raise CapabilityError(message, hint=hint, code=refused[0].code)
        self._reached = tuple(reached)
        self._write_files()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _enter(self, one: Reached) -> tuple[str, ...]:
        if one.is_local:
            return ()
        agent = str(Path(ssh_agent.__file__).resolve())
        return (sys.executable, "-I", agent, str(self._folder / "ssh.json"), one.host.target)

    def _write_files(self) -> None:
        self._folder.mkdir(mode=0o700)
        words = ssh_words("", self._options)[:-1]
        (self._folder / "ssh.json").write_text(json.dumps(words) + "\n", encoding="utf-8")
        names = "".join(f"{one.host.target} slots=1\n" for one in self._reached)
        self.hostfile.write_text(names, encoding="utf-8")
        # An MPI implementation gives options of its own in front of the host.
        self.agent.write_text(f'#!/bin/sh\nexec {shlex.join(words[:-1])} "$@"\n', encoding="utf-8")
        self.agent.chmod(0o755)
