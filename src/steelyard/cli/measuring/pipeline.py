"""Verdicts in a job of GitHub or GitLab: annotations, the job's summary, and one comment that is renewed."""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import unwritable
from steelyard.report.shown_text import shown
from steelyard.run.redact import without_secrets
from steelyard.studies.comparison.export import Form, export
from steelyard.studies.comparison.verdict_files import STICKY, to_annotations, to_pull_request

if TYPE_CHECKING:
    from steelyard.errors import SteelyardError
    from steelyard.studies.comparison.outcome import Comparison

FOLDER: Final = Path("steelyard-results") / "gate"
_PATIENCE_S: Final = 30
_PER_PAGE: Final = 100
_MOST_PAGES: Final = 50
_MAY_NOT_WRITE: Final = frozenset({401, 403, 404})


def publish(found: Comparison) -> None:
    """Say what was found to everybody who looks at a job.

    Raises
    ------
    DataError
        If the files cannot be written.
    """
    _write_comment(to_pull_request(found))
    for form, name in ((Form.JUNIT, "junit.xml"), (Form.JSON, "verdicts.json")):
        export(found, form, FOLDER / name)
    if os.environ.get("GITHUB_ACTIONS"):
        sys.stdout.write(to_annotations(found))


def publish_failure(error: SteelyardError) -> None:
    """Say that there is no verdict: what the comment said before does not hold for these revisions."""
    lines = [f"    {line}" for line in shown(error.message).splitlines()]
    _write_comment("\n".join([STICKY, "### Steelyard: no verdict", "", *lines]) + "\n")


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
    sys.stderr.write(f"comment: {_posted(text)}\n")


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
    """

    comments: str
    single: str
    headers: dict[str, str]
    method: str

    def ask(self, method: str, address: str, body: str | None = None) -> Any:
        """Ask the service, and give its answer."""
        data = None if body is None else json.dumps({"body": body}).encode()
        headers = {**self.headers, "Content-Type": "application/json", "User-Agent": "steelyard"}
        request = urllib.request.Request(address, data, headers, method=method)  # noqa: S310 - the job's own variable
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:  # noqa: S310 - as above
            return json.load(answer)

    def own_comment(self) -> int | None:
        """Give the number of the comment before."""
        for page in range(1, _MOST_PAGES + 1):
            found = self.ask("GET", f"{self.comments}?per_page={_PER_PAGE}&page={page}")
            for comment in found:
                if str(comment.get("body") or "").startswith(STICKY) and _is_ours(comment):
                    return int(comment["id"])
            if len(found) < _PER_PAGE:
                break
        return None


def _is_ours(comment: dict[str, Any]) -> bool:
    """Whether a bot wrote it, or who is named: anybody may begin a comment with the same line."""
    wanted = os.environ.get("STEELYARD_COMMENT_AUTHOR")
    author = comment.get("user") or comment.get("author") or {}
    name = str(author.get("login") or author.get("username") or "")
    return name == wanted if wanted else author.get("type") == "Bot" or "_bot_" in name


def _posted(text: str) -> str:
    """Post the comment or renew the one before, and say what was done; a job does not fail by it."""
    service = _service()
    if isinstance(service, str):
        return f"not posted: {service}"
    try:
        number = service.own_comment()
        if number is None:
            service.ask("POST", service.comments, text)
            return "posted"
        service.ask(service.method, service.single.format(number=number), text)
    except urllib.error.HTTPError as error:
        why = "; the token may only read, as that of a fork: docs/guides/suites.md says what to do"
        return f"not posted: {error.code} {error.reason}" + (why if error.code in _MAY_NOT_WRITE else "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return without_secrets(f"not posted: {error}")
    return "renewed"


def _service() -> Service | str:
    """Give the service of this job, or say what is lacking."""
    known = os.environ
    if known.get("GITHUB_REPOSITORY"):
        token, number = known.get("GITHUB_TOKEN"), _number_of_event()
        if not token or not number:
            return "this is no pull request" if token else "GITHUB_TOKEN is not set"
        root = f"{known.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{known['GITHUB_REPOSITORY']}/issues"
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        return Service(f"{root}/{number}/comments", f"{root}/comments/{{number}}", headers, "PATCH")
    if known.get("CI_API_V4_URL") and known.get("CI_PROJECT_ID"):
        token, request = known.get("GITLAB_TOKEN"), known.get("CI_MERGE_REQUEST_IID")
        if not token or not request:
            return "this is no merge request" if token else "GITLAB_TOKEN is not set"
        comments = (
            f"{known['CI_API_V4_URL']}/projects/{known['CI_PROJECT_ID']}/merge_requests/{request}/notes"
        )
        return Service(comments, f"{comments}/{{number}}", {"PRIVATE-TOKEN": token}, "PUT")
    return "this is no job of GitHub or GitLab"


def _number_of_event() -> int | None:
    """Give the number of the pull request that started the job."""
    try:
        event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_bytes())
        return int(event["pull_request"]["number"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
