"""The machine protocol of QEMU: just enough to stop and continue a machine.

While a machine is stopped its virtual clock stands still, so the guest's clocks continue where they
were; the offset to the host's clocks is measured again for each batch.

References
----------
.. [1] QEMU, docs/interop/qmp-spec.
"""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any, Final, Self

from steelyard.errors import RunError

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_S: Final = 5.0


class MachineControl:
    """A connection to one machine; a context manager.

    Parameters
    ----------
    path : Path
        The machine's control socket.

    Raises
    ------
    RunError
        If the machine does not answer.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(TIMEOUT_S)
        try:
            self._socket.connect(str(path))
            self._stream = self._socket.makefile("rwb")
            self._read()
            self.execute("qmp_capabilities")
        except OSError as error:
            self._socket.close()
            message = f"the virtual machine at `{path}` does not answer: {error}"
            raise RunError(message, code="run.vm") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._socket.close()

    def execute(self, command: str) -> dict[str, Any]:
        """Execute a command and give its answer; events that come in between are dropped.

        Raises
        ------
        RunError
            If the machine refuses it.
        """
        self._stream.write(json.dumps({"execute": command}).encode() + b"\n")
        self._stream.flush()
        while True:
            answer = self._read()
            if "error" in answer:
                message = f"the virtual machine refused `{command}`: {answer['error']['desc']}"
                raise RunError(message, code="run.vm")
            if "return" in answer:
                return answer

    def _read(self) -> dict[str, Any]:
        line = self._stream.readline()
        if not line:
            message = f"the virtual machine at `{self._path}` hung up"
            raise RunError(message, code="run.vm")
        found: dict[str, Any] = json.loads(line)
        return found
