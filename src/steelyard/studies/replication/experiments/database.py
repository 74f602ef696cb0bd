"""A PostgreSQL cluster of one run: made on the storage of its role, with a port and a password of its own.

Nothing of a cluster that the host may have is used or touched. Settings are PostgreSQL's own defaults, with
which every commit waits for the storage.
"""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, RunError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.studies.replication.devices.interface import Place, Process
    from steelyard.studies.replication.experiments.conduct import Conducted

REPAIR: Final = "make deps-replication"
USER: Final = "steelyard"
NAME: Final = "postgres"
"""Database that every new cluster has."""
READY: Final = "database system is ready to accept connections"
NO_PROGRAM: Final = 3
INITDB_LIMIT_S: Final = 180.0
START_LIMIT_S: Final = 120.0
STOP_LIMIT_S: Final = 60.0
LOOK_S: Final = 0.02
LOWEST_PORT: Final = 20_000
PORTS: Final = 12_000
"""SOURCE: ip(7): below 32768, from which the kernel takes ports for connections."""
PORT_ATTEMPTS: Final = 10
LONGEST_SOCKET_FOLDER: Final = 80
"""SOURCE: unix(7): a path has at most 107 bytes, the name of the socket included."""

_AS_USER: Final = """
export LC_ALL=C
programs=$(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin 2>/dev/null | sort -V | tail -n 1)
[ -n "$programs" ] || programs=$(dirname "$(command -v initdb)" 2>/dev/null)
[ -x "$programs/initdb" ] && [ -x "$programs/postgres" ] || { echo "no PostgreSQL here"; exit 3; }
as=
if [ "$(id -u)" = 0 ]; then
  user=$(id -u postgres 2>/dev/null || echo 65534)
  group=$(id -g postgres 2>/dev/null || echo 65534)
  # Another account loses the signal by which it ends with the conductor.
  as="setpriv --pdeathsig=keep --reuid=$user --regid=$group --clear-groups"
  # The storage may lie below a folder that only root may pass.
  pass="--inh-caps=+dac_read_search --ambient-caps=+dac_read_search"
  $as $pass true 2>/dev/null && as="$as $pass"
fi
"""
"""PostgreSQL refuses to be run by root."""

_INITDB: Final = (
    _AS_USER
    + """
# sh -c INITDB sh DATA SOCKETS
mkdir -p "$1" "$2" && chmod 700 "$1" && (umask 077; echo "$PGPASSWORD" >"$2/password") || exit 1
[ -z "$as" ] || chown -R "$user:$group" "$1" "$2"
$as "$programs/initdb" --pgdata="$1" --username=steelyard --pwfile="$2/password" --auth=scram-sha-256 \
  --encoding=UTF8 --locale=C || exit 1
rm -f "$2/password"
printf 'host all all %s scram-sha-256\\n' 0.0.0.0/0 ::/0 >>"$1/pg_hba.conf"
"$programs/postgres" --version
"""
)

_POSTGRES: Final = (
    _AS_USER
    + """
# sh -c POSTGRES sh DATA WORDS...
data=$1; shift
exec $as "$programs/postgres" -D "$data" "$@"
"""
)


@dataclass(frozen=True, slots=True)
class Database:
    """A cluster that accepts connections.

    Parameters
    ----------
    address : str
        Of its host.
    port : int
        Where it listens.
    password : str
        Of `USER`.
    """

    address: str
    port: int
    password: str

    @property
    def jdbc(self) -> str:
        """Give the address as Java's drivers take it."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"jdbc:postgresql://{host}:{self.port}/{NAME}?reWriteBatchedInserts=true"


@contextmanager
def private_database(run: Conducted, place: Place) -> Iterator[Database]:
    """Make a cluster on the storage of a role, and end it in order; the place removes its files.

    Raises
    ------
    CapabilityError
        If PostgreSQL is not installed there.
    RunError
        If the cluster cannot be made or started.
    """
    log = run.log("database")
    data, sockets = place.stored_path("database"), place.path("sockets")
    password = secrets.token_urlsafe(24)
    begin_ns = time.monotonic_ns()
    made = place.start(
        ("sh", "-c", _INITDB, "sh", data, sockets), log=log, environment={"PGPASSWORD": password}
    )
    status = _wait(made, INITDB_LIMIT_S)
    if status == NO_PROGRAM:
        message = "PostgreSQL is not installed on the device of the database"
        raise CapabilityError(message, hint=REPAIR, code="capability.replication")
    if status != 0:
        message = f"cannot create a database: {last_line(log)}"
        raise RunError(message, hint=f"read `{log.name}`", code="run.database")
    made_ns = time.monotonic_ns()
    process, port = _listening(place, log, data, sockets)
    run.says("start_up_ns", {"initdb": made_ns - begin_ns, "database": time.monotonic_ns() - made_ns})
    try:
        yield Database(place.address, port, password)
    finally:
        stop(run, process, "database", STOP_LIMIT_S)


def listen_address(address: str) -> str:
    """Give where a role listens so that others reach it under its address.

    Examples
    --------
    >>> listen_address("127.0.0.1"), listen_address("10.88.0.7"), listen_address("pi.local")
    ('127.0.0.1', '0.0.0.0', '0.0.0.0')
    """
    try:
        is_loopback = ip_address(address).is_loopback
    except ValueError:
        is_loopback = address == "localhost"
    return address if is_loopback else "0.0.0.0"  # noqa: S104 - another host is to reach it; it asks a password


def stop(run: Conducted, process: Process, role: str, limit_s: float) -> None:
    """Ask a program to end; note where it had to be killed."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(limit_s)
    except TimeoutError:
        run.missing(f"`{role}` did not end in order within {limit_s:g} s and was killed")
        process.kill()


def last_line(log: Path) -> str:
    """Give the last line of a log that says something."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return "it has written nothing"
    return next((line.strip() for line in reversed(lines) if line.strip()), "it has written nothing")


def _listening(place: Place, log: Path, data: str, sockets: str) -> tuple[Process, int]:
    """Start the cluster on a port that is free there."""
    folder = sockets if len(sockets) <= LONGEST_SOCKET_FOLDER else ""
    for _ in range(PORT_ATTEMPTS):
        port = LOWEST_PORT + secrets.randbelow(PORTS)
        options = ("-p", str(port), "-k", folder, "-c", f"listen_addresses={listen_address(place.address)}")
        before = _size(log)
        process = place.start(("sh", "-c", _POSTGRES, "sh", data, *options), log=log)
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            said = _said(log, before)
            if READY in said:
                return process, port
            if process.poll() is not None:
                break
            time.sleep(LOOK_S)
        else:
            message = f"the database was not ready after {START_LIMIT_S:g} s"
            raise RunError(message, hint=f"read `{log.name}`", code="run.database")
        if "could not bind" not in said:
            break
    message = f"the database ended before it was ready: {last_line(log)}"
    raise RunError(message, hint=f"read `{log.name}`", code="run.database")


def _wait(process: Process, limit_s: float) -> int | None:
    try:
        return process.wait(limit_s)
    except TimeoutError:
        process.kill()
        return None


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _said(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(start)
        return file.read().decode("utf-8", errors="replace")
