"""Verdicts in a job of GitHub or GitLab: annotations, the job's summary, and one comment that is renewed."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import unwritable
from steelyard.report.shown_text import LONGEST_TITLE, shortened
from steelyard.studies.comparison.export import Form, export
from steelyard.studies.comparison.verdict_files import public_text, to_annotations, to_pull_request

if TYPE_CHECKING:
    from steelyard.errors import SteelyardError
    from steelyard.studies.comparison.outcome import Comparison

FOLDER: Final = Path("steelyard-results") / "gate"
_PATIENCE_S: Final = 30
"""Seconds for everything that is asked of a service."""
_LONGEST_ANSWER: Final = 8_000_000
"""Bytes; a hundred comments of the longest kind have 6.6 million characters."""
_PER_PAGE: Final = 100
_MOST_PAGES: Final = 50
_MAY_NOT_WRITE: Final = frozenset({401, 403, 404})
_NO_LIST: Final = "the service's answer is not a list of comments"
_NOT_RENEWABLE: Final = frozenset({403, 404})
"""What a service answers where a comment was deleted meanwhile, or belongs to somebody else."""
_BOT_OF_ACTIONS: Final = "github-actions[bot]"
"""Login under which GitHub's own token writes."""


def publish(found: Comparison) -> None:
    """Say what was found to everybody who looks at a job.

    Raises
    ------
    DataError
        If the files cannot be written.
    """
    _write_comment(to_pull_request(found, _marker()))
    for form, name in ((Form.JUNIT, "junit.xml"), (Form.JSON, "verdicts.json")):
        export(found, form, FOLDER / name)
    if os.environ.get("GITHUB_ACTIONS"):
        # GitHub reads commands from both streams; what stands on the other one may be read as JSON.
        sys.stderr.write(to_annotations(found))


def publish_failure(error: SteelyardError) -> None:
    """Say that there is no verdict: what the comment said before does not hold for these revisions."""
    lines = [f"    {line}" for line in public_text(error.message).splitlines()]
    _write_comment("\n".join([_marker(), "### Steelyard: no verdict", "", *lines]) + "\n")


def _write_comment(text: str) -> None:
    path = FOLDER / "comment.md"
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name in ("junit.xml", "verdicts.json"):
            (FOLDER / name).unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")
        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if summary:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise unwritable(path, error, "start the job in a folder it may write to") from error
    said = " ".join(public_text(_posted_in_time(text)).split())
    sys.stderr.write(f"comment: {shortened(said, LONGEST_TITLE)}\n")


def _marker() -> str:
    """Give the first line of a comment, by which the next job of the same suite finds it."""
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    place = f"{here.relative_to(root).as_posix()}\n{os.environ.get('STEELYARD_COMMENT_KEY', '')}"
    return f"<!-- steelyard {hashlib.sha256(os.fsencode(place)).hexdigest()[:8]} -->"


@dataclass(frozen=True, slots=True)
class Service:
    """Where the comments of a pull or merge request are, and how one is renewed.

    Parameters
    ----------
    comments, single : str
        Addresses of all comments, and of the one whose number is filled in.
    headers : dict
        With the token.
    method : str
        Of the request that renews one.
    author : str or None
        Who writes the comments; the service is asked at `user` if that is not known.
    user : str
        Address that tells whose the token is.
    """

    comments: str
    single: str
    headers: dict[str, str]
    method: str
    author: str | None
    user: str = ""

    def ask(self, method: str, address: str, deadline: float, body: str | None = None) -> Any:
        """Ask the service before a time of the monotonic clock, and give its answer."""
        data = None if body is None else json.dumps({"body": body}).encode()
        headers = {**self.headers, "Content-Type": "application/json", "User-Agent": "steelyard"}
        request = urllib.request.Request(address, data, headers, method=method)  # noqa: S310 - the job's own variable
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(_no_answer())
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=left_s) as answer:
            content = answer.read(_LONGEST_ANSWER + 1)
        if len(content) > _LONGEST_ANSWER:
            message = f"the service's answer has more than {_LONGEST_ANSWER:_} bytes".replace("_", " ")
            raise ValueError(message)
        return json.loads(content)

    def own_comment(self, marker: str, deadline: float) -> int | None:
        """Give the number of the comment before."""
        author = self.author or self.ask("GET", self.user, deadline)["username"]
        for page in range(1, _MOST_PAGES + 1):
            found = self.ask("GET", f"{self.comments}?per_page={_PER_PAGE}&page={page}", deadline)
            if not isinstance(found, list):
                raise TypeError(_NO_LIST)
            for comment in found:
                if str(comment.get("body") or "").startswith(marker) and _author_of(comment) == author:
                    return int(comment["id"])
            if len(found) < _PER_PAGE:
                break
        return None

    def renew(self, text: str, deadline: float) -> str:
        """Renew the comment before or post the first one, and say which."""
        number = self.own_comment(text.partition("\n")[0], deadline)
        if number is not None:
            try:
                self.ask(self.method, self.single.format(number=number), deadline, text)
            except urllib.error.HTTPError as error:
                if error.code not in _NOT_RENEWABLE or _is_limit(error):
                    raise
                error.close()
            else:
                return "renewed"
        self.ask("POST", self.comments, deadline, text)
        return "posted"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nothing: the token is for the service that the job names, and a POST would become a GET."""

    def redirect_request(self, *_: object) -> None:
        """Give no request, so that the answer counts as an error."""


def _author_of(comment: dict[str, Any]) -> str:
    """Give who wrote a comment: anybody may begin one with the same line."""
    author = comment.get("user") or comment.get("author") or {}
    return str(author.get("login") or author.get("username") or "")


def _no_answer() -> str:
    return f"no answer within {_PATIENCE_S} s"


def _posted_in_time(text: str) -> str:
    """Post the comment, and say what was done or that it took too long.

    A service can send its answer byte by byte, which no limit for a single read ends: a thread waits for it.
    """
    said: list[str] = []
    deadline = time.monotonic() + _PATIENCE_S
    thread = threading.Thread(target=lambda: said.append(_posted(text, deadline)), daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    return said[0] if said else f"not posted: {_no_answer()}"


def _posted(text: str, deadline: float) -> str:
    """Post the comment or renew the one before, and say what was done; a job does not fail by it."""
    service = _service()
    if isinstance(service, str):
        return f"not posted: {service}"
    try:
        return service.renew(text, deadline)
    except urllib.error.HTTPError as error:
        return f"not posted: {_refusal(error)}"
    except (
        *(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError),
        http.client.HTTPException,
    ) as error:
        return f"not posted: {str(error) or type(error).__name__}"


def _refusal(error: urllib.error.HTTPError) -> str:
    """Say why a service refuses."""
    target = error.headers.get("Location")
    if target is not None and error.code // 100 == 3:  # noqa: PLR2004 - the class of redirects
        try:
            host = urllib.parse.urlsplit(urllib.parse.urljoin(error.url, target)).hostname
        except ValueError:
            host = None
        return f"redirected to {host or 'an invalid address'}"
    if _is_limit(error):
        return f"{error.code} {error.reason}; the rate limit of the service is reached"
    why = "; the token may only read, as that of a fork: docs/guides/suites.md says what to do"
    return f"{error.code} {error.reason}" + (why if error.code in _MAY_NOT_WRITE else "")


def _is_limit(error: urllib.error.HTTPError) -> bool:
    """Whether too much was asked, which GitHub answers as if it were forbidden."""
    return error.code == http.client.TOO_MANY_REQUESTS or (
        error.code == http.client.FORBIDDEN
        and (error.headers.get("X-RateLimit-Remaining") == "0" or "Retry-After" in error.headers)
    )


def _service() -> Service | str:
    """Give the service of this job, or say what is lacking."""
    known = os.environ
    author = known.get("STEELYARD_COMMENT_AUTHOR")
    if known.get("GITHUB_REPOSITORY"):
        number = _number_of_event()
        lack = _lack("GITHUB_TOKEN", number, "pull")
        if lack:
            return lack
        root = f"{known.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{known['GITHUB_REPOSITORY']}/issues"
        headers = {
            "Authorization": f"Bearer {_token('GITHUB_TOKEN')}",
            "Accept": "application/vnd.github+json",
        }
        comments, single = f"{root}/{number}/comments", f"{root}/comments/{{number}}"
        return Service(comments, single, headers, "PATCH", author or _BOT_OF_ACTIONS)
    project = known.get("CI_MERGE_REQUEST_PROJECT_ID") or known.get("CI_PROJECT_ID")
    if known.get("CI_API_V4_URL") and project:
        request, root = known.get("CI_MERGE_REQUEST_IID"), known["CI_API_V4_URL"]
        lack = _lack("GITLAB_TOKEN", request, "merge")
        if lack:
            return lack
        comments = f"{root}/projects/{project}/merge_requests/{request}/notes"
        single, headers = f"{comments}/{{number}}", {"PRIVATE-TOKEN": _token("GITLAB_TOKEN")}
        return Service(comments, single, headers, "PUT", author or None, f"{root}/user")
    return "this is no job of GitHub or GitLab"


def _token(variable: str) -> str:
    return os.environ.get(variable, "").strip()


def _lack(variable: str, number: object, kind: str) -> str | None:
    """Say what a job lacks to comment on its pull or merge request."""
    token = _token(variable)
    if not token:
        return f"{variable} is not set"
    if not (token.isascii() and token.isprintable()):
        # No header can carry it, and the error would quote it.
        return f"{variable} contains characters that are not allowed in a token"
    return None if number else f"this is no {kind} request"


def _number_of_event() -> int | None:
    """Give the number of the pull request that started the job."""
    try:
        event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_bytes())
        return int(event["pull_request"]["number"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
