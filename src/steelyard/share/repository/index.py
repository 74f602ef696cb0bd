"""A public repository: a folder of packages with an index, which any server of static files can offer."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from steelyard.errors import DataError, SteelyardError, unwritable
from steelyard.model.finding import OF_SOURCE
from steelyard.record.seal import hash_file
from steelyard.share.package.check import verify_place
from steelyard.share.package.crate import CRATE_NAME, RESULT
from steelyard.share.package.entry_names import fault_of_name, quoted, require_names
from steelyard.share.package.unpack import BOUNDS, read_entries
from steelyard.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

INDEX_NAME: Final = "index.json"
PAGE_NAME: Final = "index.html"
SCHEMA: Final = "steelyard/repository/1"
LARGEST_INDEX_BYTES: Final = 32 << 20
_SUFFIX: Final = ".zip"
_HASH_DIGITS: Final = 64
_SHOWN_VERDICTS: Final = 4


@dataclass(frozen=True, slots=True)
class Listed:
    """One package of a repository.

    Parameters
    ----------
    name : str
        Its file, in the folder of the index.
    title, study, question, date, device, licence : str
        As the package says them; empty where it does not.
    authors : tuple of str
        Who answers for it.
    plan_id : str
        Id of the plan that was run.
    sha256 : str
        Of the file, as hexadecimal text.
    byte_count : int
        Of the file.
    findings : int
        How many are about the result; those about the study's source are not counted.
    verdicts : dict
        How often each is given in them.
    is_confirmed : bool or None
        Whether every finding was computed again and confirmed when the index was made; ``None``: not tried.
    """

    name: str
    title: str
    study: str
    question: str
    date: str
    device: str
    licence: str
    authors: tuple[str, ...]
    plan_id: str
    sha256: str
    byte_count: int
    findings: int
    verdicts: dict[str, int] = field(default_factory=dict)
    is_confirmed: bool | None = None


@dataclass(frozen=True, slots=True)
class Indexed:
    """What an index was made of.

    Parameters
    ----------
    packages : tuple of Listed
        By name.
    refused : dict
        Files that are no packages to be offered, with the reason.
    """

    packages: tuple[Listed, ...]
    refused: dict[str, str]


def make_index(folder: Path, *, is_verified: bool = False) -> Indexed:
    """Write ``index.json`` and ``index.html`` of a folder of packages.

    Parameters
    ----------
    folder : Path
        Its files that end with ``.zip`` are packages; nothing in sub-folders is offered.
    is_verified : bool
        Whether every finding of every package is computed again; one that is not confirmed is not offered.

    Raises
    ------
    DataError
        If the folder cannot be read or written.
    """
    if not folder.is_dir():
        message = f"`{folder}` is not a folder"
        raise DataError(message, hint="give the folder that contains the packages", code="data.absent")
    packages, refused = [], {}
    for path in sorted(folder.glob(f"[!.]*{_SUFFIX}")):
        try:
            packages.append(_listed(path, is_verified=is_verified))
        except SteelyardError as error:
            refused[path.name] = error.message
    document = {"schema": SCHEMA, "packages": [asdict(each) for each in packages]}
    _write(folder / INDEX_NAME, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    _write(folder / PAGE_NAME, index_page(packages))
    return Indexed(tuple(packages), refused)


def _listed(path: Path, *, is_verified: bool) -> Listed:
    wanted = (CRATE_NAME, f"{RESULT}plan.json", f"{RESULT}findings.json", f"{RESULT}provenance.json")
    fault = fault_of_name(path.name)
    if fault is not None or path.is_symlink():
        message = f"its name cannot be offered: {fault or 'it is a link'}"
        raise DataError(message, code="data.package")
    try:
        crate, plan, findings, provenance = (json.loads(text) for text in read_entries(path, wanted))
        listed = _told(path, {each["@id"]: each for each in crate["@graph"]}, plan, findings, provenance)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"it does not describe itself: {type(error).__name__}"
        raise DataError(message, code="data.package") from error
    if not is_verified:
        return listed
    problems = verify_place(path).problems
    if problems:
        message = f"its findings are not confirmed: {problems[0]}"
        raise DataError(message, code="data.unconfirmed")
    return Listed(**{**asdict(listed), "is_confirmed": True})


def _told(
    path: Path,
    entities: Mapping[str, Mapping[str, Any]],
    plan: Mapping[str, Any],
    findings: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> Listed:
    root = entities["./"]
    authors = root["author"] if isinstance(root["author"], list) else [root["author"]]
    verdicts: dict[str, int] = {}
    own = [each for each in findings["findings"] if not str(each["claim"]).startswith(OF_SOURCE)]
    for finding in own:
        if finding["verdict"] != "descriptive":
            verdicts[str(finding["verdict"])] = verdicts.get(str(finding["verdict"]), 0) + 1
    return Listed(
        name=path.name,
        title=str(root["name"]),
        study=str(plan["study"]),
        question=str(entities.get("#question", {}).get("name", "")),
        date=str(root["datePublished"]),
        device=str((provenance.get("host") or {}).get("cpu_model", "")),
        licence=str(root["license"]["@id"]).rpartition("/")[2],
        authors=tuple(str(entities[each["@id"]]["name"]) for each in authors),
        plan_id=str(plan["id"]),
        sha256=hash_file(path),
        byte_count=path.stat().st_size,
        findings=len(own),
        verdicts=dict(sorted(verdicts.items(), key=lambda each: (-each[1], each[0]))),
    )


def read_index(content: bytes, place: str) -> tuple[Listed, ...]:
    """Read an index that somebody offers.

    Parameters
    ----------
    content : bytes
        Of ``index.json``.
    place : str
        Where it is from, for the error.

    Raises
    ------
    DataError
        If it is none, or offers a file that is not a plain file beside it.
    """
    hint = "`steelyard repository index FOLDER` makes an index"
    try:
        document = json.loads(content)
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            message = f"`{place}` is not an index of schema `{SCHEMA}`"
            raise DataError(message, hint=hint, code="data.schema")
        found = TypeAdapter(tuple[Listed, ...]).validate_python(document.get("packages"))
    except (ValueError, RecursionError, ValidationError) as error:
        message = f"`{place}` is not an index of schema `{SCHEMA}`"
        raise DataError(message, hint=hint, code="data.corrupt") from error
    for each in found:
        fault = fault_of_name(each.name) or ("it is in another folder" if "/" in each.name else None)
        if fault is not None:
            message = f"the index `{place}` offers {quoted(each.name)}, which is not allowed: {fault}"
            raise DataError(message, hint="ask whoever offers it", code="data.index")
        if not _is_hash(each.sha256) or each.byte_count < 0:
            message = f"the index `{place}` lacks hash and size of {quoted(each.name)}"
            raise DataError(message, hint="ask whoever offers it", code="data.index")
        if each.byte_count > BOUNDS.total_bytes:
            limit = f"a package has {format_bytes(BOUNDS.total_bytes)} at most"
            message = f"the index `{place}` states {each.byte_count} bytes for {quoted(each.name)}; {limit}"
            raise DataError(message, hint="ask whoever offers it", code="data.index")
    require_names((each.name for each in found), f"the index {place}")
    return found


def _is_hash(text: str) -> bool:
    return len(text) == _HASH_DIGITS and set(text) <= set("0123456789abcdef")


def choose(packages: Sequence[Listed], name: str, place: str) -> Listed:
    """Give the package of a name, with or without ``.zip``.

    Raises
    ------
    DataError
        If there is none; the nearest names are given.
    """
    for each in packages:
        if name in {each.name, each.name.removesuffix(_SUFFIX)}:
            return each
    shown = ", ".join(quoted(each.name) for each in packages[:10]) or "none"
    message = f"`{place}` offers no package {quoted(name)}; it offers: {shown}"
    raise DataError(message, hint=f"steelyard repository list {place}", code="data.absent")


def list_lines(packages: Iterable[Listed]) -> Iterator[str]:
    """Give the packages as text, in which nothing foreign can hide."""
    for each in packages:
        yield quoted(each.name).strip("`")
        yield f"  {quoted(each.title).strip('`')}"
        facts = (each.study, each.date, each.device or "device not recorded", format_bytes(each.byte_count))
        yield "  " + ", ".join(quoted(fact).strip("`") for fact in facts)
        yield f"  {each.findings} findings; {quoted(_verdicts(each)).strip('`')}"


def _verdicts(listed: Listed) -> str:
    shown = [f"{name} {count}" for name, count in list(listed.verdicts.items())[:_SHOWN_VERDICTS]]
    return ", ".join(shown) or "no verdicts"


def index_page(packages: Iterable[Listed]) -> str:
    """Write the page of a repository: without any script, every foreign text escaped."""
    rows = "".join(
        f'<tr><td><a href="{escape(quote(each.name))}">{escape(each.title)}</a>'
        f"<br><small>{escape(each.question)}</small>"
        f"<td>{escape(each.study)}<td>{escape(each.date)}<td>{escape(each.device)}"
        f"<td>{escape(format_bytes(each.byte_count))}<td>{each.findings}: {escape(_verdicts(each))}"
        f"<td><code>{escape(each.sha256[:12])}</code>"
        for each in packages
    )
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        "<title>Packages</title>\n"
        "<style>body{font:16px/1.5 sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}"
        "td,th{padding:.3rem .8rem .3rem 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}"
        "</style>\n"
        "<h1>Packages</h1>\n<p>Replication packages of Steelyard: <code>steelyard repository fetch URL "
        "NAME</code>, <code>steelyard verify FILE</code>, <code>steelyard rerun FILE</code>.</p>\n"
        "<table><tr><th>package<th>study<th>date<th>device<th>size<th>findings<th>SHA-256"
        f"{rows}</table>\n</html>\n"
    )


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise unwritable(path, error, "give a folder you may write to") from error
    finally:
        temporary.unlink(missing_ok=True)
