"""A result without what tells whose host recorded it: a pseudonym for the host, placeholders for places.

Commands, paths and devices stand in the plan, which is what was executed: beyond the places of the author
they are not taken out. A package that names a user, another host, an address or a key there is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.placed.hosts import machine_of, machines_of
from steelyard.record.provenance import read_provenance, write_provenance
from steelyard.record.seal import seal_tables
from steelyard.report.output import write_report
from steelyard.share.anonymous.addresses import addresses_in, homes_in
from steelyard.share.anonymous.placeholders import put_placeholders
from steelyard.share.anonymous.rewritten import rewrite_plan, rewrite_recorded
from steelyard.share.complete_result import result_files
from steelyard.share.package.texts import request_of
from steelyard.share.package.unpack import require_room
from steelyard.study import study_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from steelyard.model import Execution, Plan
    from steelyard.record.provenance import Provenance

REPLACED: Final = "names and ids of the host"
WHY_REPLACED: Final = (
    "`--anonymous` replaced them by a pseudonym that no other package has, and places of its user by "
    "placeholders"
)
_IDS: Final = ("host_id", "machine_id_hash", "hostname", "boot_id")
_TARGET: Final = re.compile(r"(?<![\w.@-])([A-Za-z_][\w.-]*)@([A-Za-z0-9][\w.-]*\w)(?![\w@])")
_KEY: Final = re.compile(r"(?:~|/)[\w./~-]*/\.ssh/[\w.-]+|[\w./~-]*\bid_(?:rsa|dsa|ecdsa|ed25519)[\w.-]*")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z][0-9]{0,3}|here")
_WORD_OF_OPTION: Final = re.compile(r"(?:-[JilFb]|-?o?[A-Za-z]+=)?(.*)")


@contextmanager
def anonymous_copy(result: Path) -> Iterator[Path]:
    """Give a copy of a result folder in which the host has a pseudonym, analysed and reported anew.

    Parameters
    ----------
    result : Path
        Complete result folder. It is not changed.

    Raises
    ------
    DataError
        If there is no room for the copy.
    """
    with tempfile.TemporaryDirectory(prefix="steelyard-anonymous-") as folder:
        copy = Path(folder) / "result"
        files = list(result_files(result))
        require_room(Path(folder), ((result / name).stat().st_size for name in files), str(result))
        for name in files:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(result / name, copy / name)
        _make_anonymous(copy)
        plan = read_plan(copy / PLAN_NAME)
        study = study_of(plan.study, result)
        study.analyse(copy)
        if (copy / "report.html").exists():
            write_report(study.page(copy), copy)
        yield copy


def _make_anonymous(result: Path) -> None:
    """Put a pseudonym for the host, and placeholders for what its user keeps where."""
    before, provenance = read_plan(result / PLAN_NAME), read_provenance(result)
    # What git says of a folder of the author's names him where the repository is public.
    write_provenance(result, replace(provenance, git=None, hosts=_renamed(provenance)))
    put = put_placeholders(before)
    plan = rewrite_plan(result, put)
    pseudonym = _pseudonym(plan.id)
    known = dict.fromkeys(_own_ids(provenance), pseudonym) | _of_hosts(provenance, plan.id)
    known |= {before.id: plan.id}
    words = re.compile(
        "|".join(rf"(?<!\w){re.escape(each)}(?!\w)" for each in sorted(known, key=len, reverse=True))
    )
    rewrite_recorded(result, lambda text: words.sub(lambda match: known[match[0]], put(text)))
    for path in result.glob("traces/*/header.json"):
        _replace_facts(path, pseudonym)
    seal_tables(result)


def is_anonymous(provenance: Provenance) -> bool:
    """Whether a result is that of an anonymous package: its host has the pseudonym of its plan."""
    return provenance.host_id == _pseudonym(provenance.plan_id)


def _pseudonym(plan_id: str, number: int = 0) -> str:
    which = f" {number}" if number else ""
    return hashlib.sha256(f"anonymous host{which} of {plan_id}".encode()).hexdigest()[:16]


def _renamed(provenance: Provenance) -> dict[str, JsonValue]:
    """Give what hosts say of themselves, each with another name."""
    found: dict[str, JsonValue] = {}
    for number, (host_id, described) in enumerate(sorted(provenance.hosts.items()), start=1):
        facts = described.get("host") if isinstance(described, dict) else None
        if isinstance(described, dict) and isinstance(facts, dict):
            found[host_id] = {**described, "host": {**facts, "hostname": _name(number)}}
    return found


def _name(number: int) -> str:
    return f"host-{number}"


def _of_hosts(provenance: Provenance, plan_id: str) -> dict[str, str]:
    """Give pseudonyms of the hosts that runs were placed on; nodes of one machine stay that."""
    machines = [each for each in machines_of(provenance.hosts) if each != provenance.host_id]
    of_machine = {each: _pseudonym(plan_id, number) for number, each in enumerate(machines, start=1)}
    if provenance.host_id:
        of_machine[provenance.host_id] = _pseudonym(plan_id)
    found = dict(of_machine)
    for number, (host_id, described) in enumerate(sorted(provenance.hosts.items()), start=1):
        machine = machine_of(host_id)
        facts = described.get("host") if isinstance(described, dict) else None
        said = {key: str(facts.get(key) or "") for key in _IDS} if isinstance(facts, dict) else {}
        name = said.pop("hostname", "")
        found |= {text: of_machine[machine] for text in said.values() if len(text) > 1}
        # A short name is a word of other texts too, and tells nothing.
        if len(name) > 1 and _PLAIN_NAME.fullmatch(name) is None:
            found[name] = _name(number)
        if host_id != machine:
            found[host_id] = f"{of_machine[machine]}:{_name(number)}"
    return found


def _replace_facts(path: Path, pseudonym: str) -> None:
    """Replace the name that each device says of itself, and the server of a storage that is in a network."""
    header = json.loads(path.read_bytes())
    devices = header.get("devices") if isinstance(header, dict) else None
    for number, facts in enumerate((devices or {}).values()):
        if "host" in facts:
            facts["host"] = f"{pseudonym}-{number}"
        if ":" in str(facts.get("storage_source", "")):
            facts["storage_source"] = f"{pseudonym}:"
    path.write_text(json.dumps(header, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def ids_of(provenance: Provenance) -> frozenset[str]:
    """Give what names the hosts that recorded a result, and no other."""
    return _own_ids(provenance) | frozenset(_of_hosts(provenance, provenance.plan_id))


def _own_ids(provenance: Provenance) -> frozenset[str]:
    found = {provenance.host_id, *(str(provenance.host.get(name) or "") for name in _IDS)}
    found.add(str((provenance.environment or {}).get("sha256") or ""))
    return frozenset(each for each in found if len(each) > 1)


def private_texts(plan: Plan, provenance: Provenance) -> frozenset[str]:
    """Give what a plan and a provenance say of people, hosts, addresses and keys.

    Names of users and hosts as ssh takes them, home folders, addresses (`addresses`), files of keys, paths of
    device files, and names of devices that say more than a letter and a number.

    Parameters
    ----------
    plan, provenance : Plan, Provenance
        Of the result.
    """
    texts = [str(value) for value in plan.options.values()]
    texts += [value for cell in plan.cells for value in cell.levels.values()]
    texts += [
        str(each) for cell in plan.cells if cell.execution is not None for each in _said_of(cell.execution)
    ]
    texts += [word for session in provenance.sessions for word in session.command_line]
    given = {_pseudonym(provenance.plan_id, number) for number in range(len(provenance.hosts) + 1)}
    given |= {_name(number) for number in range(1, len(provenance.hosts) + 1)}
    found = {each for each in ids_of(provenance) if not given.issuperset(each.split(":"))}
    for text in texts:
        for user, host in _TARGET.findall(text):
            if not host.startswith("sha256"):
                found |= {user, host}
        found.update(_KEY.findall(text))
        found.update(homes_in(text))
        found.update(addresses_in(text))
    request = request_of(plan) or {}
    found.update(str(request[key]) for key in ("devices", "hostfile") if "/" in str(request.get(key) or ""))
    for name, device in _devices(plan).items():
        found.update(_of_device(name, device))
    return frozenset(each for each in found if len(each) > 1 and each not in {"root", "localhost"})


def _said_of(execution: Execution) -> Iterator[str]:
    """Give the words of a command and the values of its environment."""
    yield from execution.command
    yield from execution.environment.values()


def _devices(plan: Plan) -> Mapping[str, Any]:
    try:
        found = json.loads(str(plan.options.get("devices") or "{}"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _of_device(name: str, device: object) -> Iterator[str]:
    if _PLAIN_NAME.fullmatch(name) is None:
        yield name
    if not isinstance(device, dict) or device.get("kind") != "ssh":
        return
    user, _, host = str(device.get("host", "")).rpartition("@")
    yield from (user, host, str(device.get("address") or ""))
    for word in device.get("ssh_options") or ():
        match = _WORD_OF_OPTION.fullmatch(str(word))
        value = match[1] if match else ""
        if any(sign in value for sign in "/@.~"):
            yield from (part for part in value.split("@") if part)
