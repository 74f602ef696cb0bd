"""Index and packages from a folder or a server: by http and https alone, bounded, resumed, checked."""

from __future__ import annotations

import hashlib
import http.client
import os
import shlex
import stat
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import quote, urljoin, urlsplit

from steelyard import __version__
from steelyard.errors import DataError, UsageError, unwritable
from steelyard.share.package.archive import UNWATCHED
from steelyard.share.package.entry_names import quoted, visible
from steelyard.share.package.unpack import require_package, require_room
from steelyard.share.repository.index import INDEX_NAME, LARGEST_INDEX_BYTES, choose, read_index
from steelyard.share.repository.pace import PACE, Allowance, Pace, WatchedHttp, WatchedHttps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedIOBase, BufferedReader
    from pathlib import Path

    from steelyard.share.package.archive import Watcher
    from steelyard.share.repository.index import Listed

_SCHEMES: Final = ("http", "https")
_CHUNK_BYTES: Final = 1 << 20
_PARTIAL: Final = 206
_NOT_THERE: Final = 416
_REDIRECTS: Final = range(300, 400)
_HINT: Final = "repeat the command; what was fetched so far is kept and continued"


class _SameKind(urllib.request.HTTPRedirectHandler):
    """Follows to http and https alone, and never from a protected connection to an open one."""

    max_redirections = 5

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Give the request for where the server sends us, if we go there."""
        old, new = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if new not in _SCHEMES or (old == "https" and new == "http"):
            message = f"`{req.full_url}` leads to {quoted(newurl)}, which is not followed"
            raise DataError(message, hint="ask whoever offers it", code="data.redirect")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def is_address(place: str) -> bool:
    """Whether a place is an address, not a folder.

    Raises
    ------
    UsageError
        If it is one of a scheme that is not used.

    Examples
    --------
    >>> is_address("https://example.org/packages"), is_address("results")
    (True, False)
    """
    if "://" not in place:
        return False
    parts = urlsplit(place)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        message = f"`{place}` is not an address of packages"
        hint = "allowed: https://..., http://..., or a folder"
        raise UsageError(message, hint=hint, code="usage.address")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        message = "the address of a repository may not contain a user, password, query or fragment"
        raise UsageError(message, hint="https://example.org/packages/", code="usage.address")
    return True


def fetch_index(place: str, pace: Pace = PACE) -> tuple[Listed, ...]:
    """Give the packages that a folder or a server offers.

    Parameters
    ----------
    place : str
        Folder, or address of one.
    pace : Pace
        How slow a server may be.

    Raises
    ------
    DataError
        If there is no index, or it cannot be used.
    """
    source = f"{_base(place)}{INDEX_NAME}"
    allowance = Allowance(LARGEST_INDEX_BYTES, pace.index_s, pace)
    with _reading(place, INDEX_NAME, 0, allowance) as (file, _):
        content = file.read(LARGEST_INDEX_BYTES + 1)
    if len(content) > LARGEST_INDEX_BYTES:
        message = f"`{source}` has more than {LARGEST_INDEX_BYTES} bytes"
        raise DataError(message, hint="ask whoever offers it", code="data.index")
    return read_index(content, source)


def fetch(
    place: str, name: str, output: Path | None, watcher: Watcher = UNWATCHED, pace: Pace = PACE
) -> Path:
    """Fetch a package and check its size and hash; what is not the package that the index names is not kept.

    Parameters
    ----------
    place : str
        Folder, or address of one.
    name : str
        Of the package, with or without ``.zip``.
    output : Path or None
        File to write, which must not exist; by default the name of the package, here.
    watcher : Watcher
        Told how far it is.
    pace : Pace
        How slow a server may be.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    UsageError
        If the file exists.
    DataError
        If the package is not offered, cannot be fetched, is not what the index says, or there is no room.
    """
    from pathlib import Path  # noqa: PLC0415 - needed at run time here alone

    listed = choose(fetch_index(place, pace), name, place)
    path = Path(listed.name) if output is None else output
    if os.path.lexists(path):
        message = f"`{path}` already exists"
        raise UsageError(message, hint="give another file with `-o`", code="usage.exists")
    part = path.with_name(f".{path.name}.{listed.sha256[:16]}.part")
    try:
        _continue(place, listed, part, watcher, pace)
        found = _hash_of(part)
        if found != listed.sha256:
            part.unlink()
            message = f"{quoted(listed.name)} has the hash {found}; the index says {listed.sha256}"
            hint = "it was changed, or its index is older: ask whoever offers it; nothing was kept"
            raise DataError(message, hint=hint, code="data.hash")
        _require_package(part, listed.name)
        part.rename(path)
    except OSError as error:
        raise unwritable(path, error, "give a file in a folder you may write to with `-o`") from error
    return path


def _require_package(part: Path, name: str) -> None:
    """Refuse, and do not keep, an archive that nobody would unpack."""
    try:
        require_package(part)
    except DataError as error:
        part.unlink()
        message = error.message.replace(str(part), visible(name))
        hint = "ask whoever offers it; nothing was kept"
        raise DataError(message, hint=hint, code=error.code) from error


def _continue(place: str, listed: Listed, part: Path, watcher: Watcher, pace: Pace) -> None:
    """Fetch what is lacking of a file."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, 0o600), "r+b") as into:
        done = into.seek(0, os.SEEK_END)
        if done > listed.byte_count:
            done = into.truncate(0)
        if done == listed.byte_count:
            return
        lacking = listed.byte_count - done
        require_room(part.parent, (lacking,), place)
        with _reading(place, listed.name, done, Allowance(listed.byte_count, None, pace)) as (file, begin):
            done = into.seek(begin)
            into.truncate()
            while chunk := file.read1(min(_CHUNK_BYTES, listed.byte_count - done + 1)):  # what came is kept
                done += len(chunk)
                if done > listed.byte_count:
                    break
                into.write(chunk)
                watcher.packed(done, listed.byte_count)
    if done > listed.byte_count:
        part.unlink()
        message = f"{quoted(listed.name)} is larger than the {listed.byte_count} bytes that the index says"
        raise DataError(message, hint="ask whoever offers it; nothing was kept", code="data.hash")
    if done < listed.byte_count:
        message = f"{quoted(listed.name)} ended after {done} of {listed.byte_count} bytes"
        raise DataError(message, hint=_HINT, code="data.fetch")


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _base(place: str) -> str:
    folder = place.removesuffix(INDEX_NAME)
    return folder if folder.endswith("/") or not folder else f"{folder}/"


@contextmanager
def _reading(place: str, name: str, begin: int, allowance: Allowance) -> Iterator[tuple[BufferedIOBase, int]]:
    """Read a file of a repository from a byte on; also gives where the answer really begins."""
    if not is_address(place):
        with _reading_folder(place, name) as file:
            yield file, file.seek(begin)
        return
    address = urljoin(_base(place), quote(name))
    request = urllib.request.Request(address, headers={"User-Agent": f"steelyard/{__version__}"})  # noqa: S310 - the scheme was checked
    if begin:
        request.add_header("Range", f"bytes={begin}-")
    try:
        with _opener(allowance).open(request, timeout=allowance.wait_s()) as answer:
            yield answer, begin if _continues(answer, begin) else 0
    except urllib.error.HTTPError as error:
        with suppress(OSError):
            error.close()
        hint = "give the address of a folder that `steelyard repository index` made an index of"
        if error.code == _NOT_THERE:
            hint = "remove the file that ends with `.part`, then repeat the command"
        message = f"cannot fetch `{address}`: the server answers {error.code}"
        if error.code in _REDIRECTS:
            message = f"`{address}` leads elsewhere, which is not followed"
        raise DataError(message, hint=hint, code="data.fetch") from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        message = f"cannot fetch `{address}`: {quoted(str(reason)).strip('`') or type(error).__name__}"
        raise DataError(message, hint=_HINT, code="data.fetch") from error


@contextmanager
def _reading_folder(place: str, name: str) -> Iterator[BufferedReader]:
    path = f"{_base(place)}{name}"
    try:
        # A pipe of that name would be waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                message = f"`{path}` is not a file"
                raise DataError(message, hint="give the folder of a repository", code="data.index")
            yield file
    except FileNotFoundError as error:
        message = f"`{path}` does not exist"
        hint = f"steelyard repository index {shlex.quote(place)}"
        raise DataError(message, hint=hint, code="data.absent") from error


def _continues(answer: http.client.HTTPResponse, begin: int) -> bool:
    """Whether a server sends what was asked for: a server without ranges sends everything."""
    said = answer.headers.get("Content-Range") or ""
    return bool(begin) and answer.status == _PARTIAL and said.startswith(f"bytes {begin}-")


def _opener(allowance: Allowance) -> urllib.request.OpenerDirector:
    """Give what opens http and https and nothing else: no files, no ftp, no data in addresses."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        WatchedHttp(allowance),
        WatchedHttps(allowance),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _SameKind(),
    ):
        opener.add_handler(handler)
    return opener
