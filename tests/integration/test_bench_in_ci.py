"""A gate in a job of GitHub or GitLab, against servers of our own that answer as theirs do."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import textwrap
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from fixtures.git_repository import MadeRepository
from steelyard.cli import execute
from steelyard.cli.measuring import pipeline
from steelyard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timing

SUITE = "[benchmark.short]\ncommand = './program'\nmargin_percent = 40\n"
OF_JOBS = (
    *("GITHUB_ACTIONS", "GITHUB_REPOSITORY", "GITHUB_TOKEN", "GITHUB_EVENT_PATH", "GITHUB_STEP_SUMMARY"),
    *("GITHUB_API_URL", "CI_API_V4_URL", "CI_PROJECT_ID", "CI_MERGE_REQUEST_IID", "GITLAB_TOKEN"),
    *("CI_MERGE_REQUEST_PROJECT_ID", "STEELYARD_COMMENT_AUTHOR", "STEELYARD_COMMENT_KEY"),
)


REPOSITORY = Path(__file__).parents[2]
BOT = {"type": "Bot", "login": "github-actions[bot]"}
PROJECT_BOT = "project_5_bot_9f"


class Forge(ThreadingHTTPServer):
    """A service with the comments of one request.

    ``refused`` says by method which status and headers it answers instead, ``raw`` which bytes, one by one
    where ``pause_s`` is above zero.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.refused: dict[str, tuple[int, dict[str, str]]] = {}
        self.raw: dict[str, bytes] = {}
        self.pause_s = 0.0
        self.address = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Forge

    def answer(self, content: Any, status: int = 200) -> None:
        data = json.dumps(content).encode()
        status, headers = self.server.refused.get(self.command, (status, {}))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def is_odd(self) -> bool:
        """Answer what the test wants instead, if it does."""
        self.server.asked.append(f"{self.command} {self.path}")
        raw = self.server.raw.get(self.command)
        if raw is not None:
            self.close_connection = True
            size = 1 if self.server.pause_s else len(raw) or 1
            with contextlib.suppress(OSError):
                for at in range(0, len(raw), size):
                    self.wfile.write(raw[at : at + size])
                    time.sleep(self.server.pause_s)
        elif self.command in self.server.refused:
            self.answer({})
        else:
            return False
        return True

    def said(self) -> str:
        assert self.headers.get("Authorization") == "Bearer t" or self.headers.get("PRIVATE-TOKEN") == "t"
        length = int(self.headers["Content-Length"])
        return str(json.loads(self.rfile.read(length))["body"])

    def do_GET(self) -> None:
        if self.is_odd():
            return
        if self.path.endswith("/user"):
            self.answer({"username": PROJECT_BOT})
            return
        page = int(self.path.partition("&page=")[2])
        self.answer(self.server.comments[100 * (page - 1) : 100 * page])

    def do_POST(self) -> None:
        if self.is_odd():
            return
        author = {"author": {"username": PROJECT_BOT}} if "/notes" in self.path else {"user": BOT}
        number = len(self.server.comments) + 1
        self.server.comments.append({"id": number, "body": self.said(), **author})
        self.answer({}, 201)

    def do_PATCH(self) -> None:
        if self.is_odd():
            return
        number = int(self.path.rpartition("/")[2])
        self.server.comments[number - 1]["body"] = self.said()
        self.answer({})

    do_PUT = do_PATCH  # noqa: N815 - the server looks for this name

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def started() -> Iterator[Forge]:
    with Forge() as made:
        threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture
def forge() -> Iterator[Forge]:
    with started() as made:
        yield made


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in an empty folder, in no job."""
    for name in OF_JOBS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEELYARD_BUILDS", str(tmp_path / "builds"))
    (tmp_path / "source" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "source")


@pytest.fixture
def made(tmp_path: Path, job: None, monkeypatch: pytest.MonkeyPatch) -> MadeRepository:
    made = MadeRepository(tmp_path / "repository")
    made.commit("quick", program="#!/bin/sh\nexec sleep 0.01\n", steelyard_dot_toml=SUITE)
    made.git("checkout", "--quiet", "-b", "work")
    made.commit("slow", program="#!/bin/sh\nexec sleep 0.05\n")
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def github(job: None, forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    event = tmp_path / "event.json"
    event.write_text('{"pull_request": {"number": 7}}', encoding="utf-8")
    known = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "ada/engine",
        "GITHUB_TOKEN": "t",
        "GITHUB_API_URL": forge.address,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    return tmp_path / "summary.md"


def gate(*words: str) -> int:
    return execute(["bench", "--ci", "--minutes", "0.2", "--rev", "main", "--rev", "HEAD", *words])


def test_a_pull_request_has_one_comment_that_is_renewed(
    made: MadeRepository, github: Path, forge: Forge, capsys: pytest.CaptureFixture[str]
) -> None:
    forge.comments = [{"id": at + 1, "body": "hello", "user": {"type": "User"}} for at in range(120)]
    assert gate("--json") == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["schema"] == "steelyard/comparison/1"
    assert "\n::error title=short%3A slower" in shown.err
    assert "comment: posted" in shown.err
    assert re.match(r"<!-- steelyard [0-9a-f]{8} -->\n### Steelyard: 1 slower\n", forge.comments[120]["body"])
    marker = forge.comments[120]["body"].partition("\n")[0]
    forge.comments[3]["body"] = f"{marker}\na stranger wrote this"
    forge.comments[4] = {
        "id": 5,
        "body": f"{marker}\nanother bot",
        "user": {"type": "Bot", "login": "b[bot]"},
    }
    assert github.read_text(encoding="utf-8") == forge.comments[120]["body"]
    (made.folder / "program").write_text("#!/bin/sh\nexec sleep 0.01\n", encoding="utf-8")
    made.commit("repaired")
    assert gate() == 0
    assert "comment: renewed" in capsys.readouterr().err
    assert len(forge.comments) == 121
    assert forge.comments[120]["body"].startswith(f"{marker}\n### Steelyard: 1 equivalent\n")
    assert forge.comments[4]["body"].endswith("another bot")
    assert forge.comments[3]["body"].endswith("a stranger wrote this")
    assert {each.name for each in (made.folder / "steelyard-results" / "gate").iterdir()} == {
        "comment.md",
        "junit.xml",
        "verdicts.json",
    }
    schema = REPOSITORY / "docs/reference/comparison.schema.json"
    verdicts = made.folder / "steelyard-results" / "gate" / "verdicts.json"
    jsonschema.validate(json.loads(verdicts.read_bytes()), json.loads(schema.read_bytes()))


@pytest.mark.long("five commits are measured by a gate, a history and a bisection")
def test_a_repository_goes_through_the_whole(
    made: MadeRepository, github: Path, forge: Forge, capsys: pytest.CaptureFixture[str]
) -> None:
    """A request is commented and red, its slower level is accepted, and the commit is found."""
    culprit = made.git("rev-parse", "HEAD")
    for number in range(4):
        made.commit(f"documentation {number}", README=str(number))
    assert gate("--note") == 1
    assert "### Steelyard: 1 slower" in forge.comments[0]["body"]
    assert execute(["history", "--notes"]) == 1
    newest = made.git("rev-parse", "--short=9", "HEAD")
    assert f"slower at `{newest}`" in capsys.readouterr().out
    assert execute(["history", "--notes", "--accept", newest, "--why", "checks every packet now"]) == 0
    assert execute(["history", "--notes"]) == 0
    # What is accepted is the level of the history: the gate still says what the request changes.
    assert gate() == 1
    capsys.readouterr()
    assert execute(["bisect", "main", "HEAD", "--minutes", "1", "--json", "--", "./program"]) == 0
    assert json.loads(capsys.readouterr().out)["culprits"] == [culprit]


def test_a_build_that_fails_replaces_the_verdicts_of_before(
    made: MadeRepository, github: Path, forge: Forge
) -> None:
    assert gate("--build", "echo 'no `such` header' && exit 1") == 4
    assert "-->\n### Steelyard: no verdict\n\n    cannot build" in forge.comments[0]["body"]
    assert not (made.folder / "steelyard-results" / "gate" / "verdicts.json").exists()
    assert github.exists()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("GITHUB_TOKEN", None, "GITHUB_TOKEN is not set"),
        ("GITHUB_EVENT_PATH", None, "this is no pull request"),
        ("GITHUB_API_URL", "http://127.0.0.1:9", "Connection refused"),
        (None, 403, "403 Forbidden; the token may only read"),
    ],
)
def test_a_comment_that_cannot_be_posted_changes_no_verdict(  # noqa: PLR0917 - fixtures
    made: MadeRepository,
    github: Path,
    forge: Forge,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str | None,
    value: Any,
    reason: str,
) -> None:
    if name is None:
        forge.refused = {"GET": (value, {})}
    elif value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value)
    assert gate() == 1
    assert f"comment: not posted: {reason}" in capsys.readouterr().err.replace(
        "<urlopen error [Errno 111] ", ""
    )
    assert github.exists()


def test_a_merge_request_of_gitlab_is_commented(
    made: MadeRepository, forge: Forge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {
        "CI_API_V4_URL": f"{forge.address}/api/v4",
        "CI_PROJECT_ID": "8",
        "CI_MERGE_REQUEST_PROJECT_ID": "5",
        "CI_MERGE_REQUEST_IID": "3",
        "GITLAB_TOKEN": "t\n",
    }
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    assert gate() == 1
    assert "::error" not in capsys.readouterr().err
    assert len(forge.comments) == 1
    marker = forge.comments[0]["body"].partition("\n")[0]
    foreign = {"id": 2, "body": f"{marker}\nforeign", "author": {"username": "project_9_bot_1a"}}
    forge.comments.insert(0, foreign)
    forge.comments[1]["id"] = 2
    pipeline.publish_failure(UsageError("no suite"))
    assert [comment["body"].partition("\n")[2] for comment in forge.comments] == [
        "foreign",
        "### Steelyard: no verdict\n\n    no suite\n",
    ]
    assert forge.asked[0] == "GET /api/v4/user"
    assert forge.asked[-1] == "PUT /api/v4/projects/5/merge_requests/3/notes/2"


def test_outside_of_a_job_the_files_are_written(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate() == 1
    assert "not posted: this is no job of GitHub or GitLab" in capsys.readouterr().err
    assert (made.folder / "steelyard-results" / "gate" / "junit.xml").exists()


def renewed(capsys: pytest.CaptureFixture[str], message: str = "no suite") -> str:
    """Say that there is no verdict, and give what was said of the comment."""
    pipeline.publish_failure(UsageError(message))
    return capsys.readouterr().err.removeprefix("comment: ").strip()


@pytest.mark.usefixtures("github")
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_token_goes_to_no_other_host(
    forge: Forge, capsys: pytest.CaptureFixture[str], method: str, status: int
) -> None:
    with started() as other:
        address = other.address.replace("127.0.0.1", "localhost")
        forge.refused = {method: (status, {"Location": f"{address}/stolen?per_page=100&page=1"})}
        assert renewed(capsys) == "not posted: redirected to localhost"
        assert other.asked == []
    assert forge.comments == []


@pytest.mark.usefixtures("github")
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1", "IncompleteRead"),
        (b"nonsense \x1b[31m\r\n\r\n", "nonsense <U+001B>[31m"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 200_000, "recursion"),
        (b"HTTP/1.1 200 OK\r\n\r\n[" + b" " * 8_000_000 + b"]", "more than 8 000 000 bytes"),
        (b"HTTP/1.1 200 OK\r\n\r\n{}", "not a list of comments"),
        (b"HTTP/1.1 200 OK\r\n\r\n[7]", "'int' object"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://[x/\r\n\r\n", "Invalid IPv6 URL"),
        (b"HTTP/1.1 300 Many\r\nLocation: http://[x/\r\n\r\n", "redirected to an invalid address"),
        (b"", "closed connection"),
    ],
    ids=["part", "nonsense", "deep", "long", "object", "numbers", "address", "many", "nothing"],
)
def test_no_answer_of_a_service_fails_a_job(
    forge: Forge, capsys: pytest.CaptureFixture[str], raw: bytes, reason: str
) -> None:
    forge.raw = {"GET": raw}
    said = renewed(capsys)
    assert said.startswith("not posted: ")
    assert reason in said
    assert len(said) < 500


@pytest.mark.usefixtures("github")
@pytest.mark.parametrize("address", ["http://127.0.0.1:x", "http://a b", "nowhere", "http://[x"])
def test_no_address_of_a_service_fails_a_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    monkeypatch.setenv("GITHUB_API_URL", address)
    assert renewed(capsys).startswith("not posted: ")


@pytest.mark.usefixtures("github")
@pytest.mark.parametrize("raw", [b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 99, b"HTTP/1.1 200 " + b"O" * 99])
def test_a_service_that_trickles_is_left(
    forge: Forge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raw: bytes
) -> None:
    monkeypatch.setattr(pipeline, "_PATIENCE_S", 0.5)
    forge.raw, forge.pause_s = {"GET": raw}, 0.03
    begin = time.monotonic()
    assert renewed(capsys) == "not posted: no answer within 0.5 s"
    assert time.monotonic() - begin < 2


@pytest.mark.usefixtures("github")
@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (404, {}, "posted"),
        (403, {}, "posted"),
        (403, {"X-RateLimit-Remaining": "7"}, "posted"),
        (403, {"X-RateLimit-Remaining": "0"}, "not posted: 403 Forbidden; the rate limit"),
        (429, {}, "not posted: 429 Too Many Requests; the rate limit"),
    ],
)
def test_a_comment_that_cannot_be_renewed_is_posted_anew(
    forge: Forge, capsys: pytest.CaptureFixture[str], status: int, headers: dict[str, str], said: str
) -> None:
    assert renewed(capsys) == "posted"
    forge.refused = {"PATCH": (status, headers)}
    assert renewed(capsys).startswith(said)
    assert len(forge.comments) == 1 + (said == "posted")


@pytest.mark.usefixtures("github")
def test_each_suite_and_each_job_of_a_matrix_has_its_comment(
    forge: Forge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert renewed(capsys) == "posted"
    monkeypatch.setenv("STEELYARD_COMMENT_KEY", "linux")
    assert [renewed(capsys, "linux"), renewed(capsys, "on linux")] == ["posted", "renewed"]
    assert forge.comments[1]["body"].endswith("on linux\n")
    monkeypatch.delenv("STEELYARD_COMMENT_KEY")
    Path("library").mkdir()
    monkeypatch.chdir("library")
    assert [renewed(capsys), renewed(capsys)] == ["posted", "renewed"]
    assert len({comment["body"].partition("\n")[0] for comment in forge.comments}) == 3
    monkeypatch.setenv("STEELYARD_COMMENT_AUTHOR", "ada")
    assert renewed(capsys) == "posted"


@pytest.mark.parametrize("token", ["hunter2\n", "hun\nter2"])
def test_no_secret_is_published(
    github: Path,
    forge: Forge,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    token: str,
) -> None:
    monkeypatch.setenv("UPLOAD_PASSWORD", token)
    assert renewed(capsys, f"cannot build: `curl -H {token.strip()}`") == "posted"
    published = forge.comments[0]["body"] + github.read_text(encoding="utf-8")
    assert published.count("curl -H ***") == 2
    monkeypatch.setenv("GITHUB_TOKEN", "hun\nter2")
    assert renewed(capsys) == "not posted: GITHUB_TOKEN contains characters that are not allowed in a token"


@pytest.mark.parametrize(
    ("path", "begin", "variable", "shell"),
    [
        ("packaging/github/action.yml", "      run: |\n", "ARGUMENTS", "bash"),
        ("packaging/gitlab/steelyard.yml", "    - |\n", "STEELYARD_ARGUMENTS", "bash"),
        ("packaging/gitlab/steelyard.yml", "    - |\n", "STEELYARD_ARGUMENTS", "sh"),
    ],
)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", []),
        ("--minutes\n5\n\n", ["--minutes", "5"]),
        ("sort*\n--build\nmake -j 'all' $HOME `id`", ["sort*", "--build", "make -j 'all' $HOME `id`"]),
    ],
)
def test_the_arguments_of_a_template_are_one_a_line(  # noqa: PLR0917 - a table
    tmp_path: Path, path: str, begin: str, variable: str, shell: str, given: str, words: list[str]
) -> None:
    text = (REPOSITORY / path).read_text(encoding="utf-8").partition(begin)[2].partition("  artifacts:")[0]
    program = tmp_path / "steelyard"
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n", encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "sorted.txt").touch()
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "BASE": "origin/main",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        variable: given,
    }
    command = [shell, "-e", "-c", textwrap.dedent(text)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["bench", "--ci", "--rev", "origin/main", "--rev", "HEAD", *words]
