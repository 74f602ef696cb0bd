"""A gate in a job of GitHub or GitLab, against servers of our own that answer as theirs do."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.git_repository import MadeRepository
from steelyard.cli import execute

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timing

SUITE = "[benchmark.short]\ncommand = './program'\nmargin_percent = 40\n"
OF_JOBS = (
    *("GITHUB_ACTIONS", "GITHUB_REPOSITORY", "GITHUB_TOKEN", "GITHUB_EVENT_PATH", "GITHUB_STEP_SUMMARY"),
    *("GITHUB_API_URL", "CI_API_V4_URL", "CI_PROJECT_ID", "CI_MERGE_REQUEST_IID", "GITLAB_TOKEN"),
    "STEELYARD_COMMENT_AUTHOR",
)


class Forge:
    """A service with the comments of one request."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.refuses = 0
        forge = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self, content: Any, status: int = 200) -> None:
                data = json.dumps(content).encode()
                self.send_response(forge.refuses or status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def said(self) -> str:
                assert (
                    self.headers.get("Authorization") == "Bearer t"
                    or self.headers.get("PRIVATE-TOKEN") == "t"
                )
                length = int(self.headers["Content-Length"])
                return str(json.loads(self.rfile.read(length))["body"])

            def do_GET(self) -> None:
                page = int(self.path.partition("&page=")[2])
                self.answer(forge.comments[100 * (page - 1) : 100 * page])

            def do_POST(self) -> None:
                said = self.said()
                if not forge.refuses:
                    forge.comments.append(
                        {"id": len(forge.comments) + 1, "body": said, "user": {"type": "Bot", "login": "b"}}
                    )
                self.answer({}, 201)

            def do_PATCH(self) -> None:
                number = int(self.path.rpartition("/")[2])
                forge.comments[number - 1]["body"] = self.said()
                self.answer({})

            do_PUT = do_PATCH  # noqa: N815 - the server looks for this name

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def forge() -> Iterator[Forge]:
    made = Forge()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeRepository:
    made = MadeRepository(tmp_path / "source")
    made.commit("quick", program="#!/bin/sh\nexec sleep 0.01\n", steelyard_dot_toml=SUITE)
    made.git("checkout", "--quiet", "-b", "work")
    made.commit("slow", program="#!/bin/sh\nexec sleep 0.05\n")
    for name in OF_JOBS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEELYARD_BUILDS", str(tmp_path / "builds"))
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def github(made: MadeRepository, forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    forge.comments[3]["body"] = "<!-- steelyard -->\na stranger wrote this"
    assert gate() == 1
    shown = capsys.readouterr()
    assert "::error title=short%3A slower" in shown.out
    assert "comment: posted" in shown.err
    assert forge.comments[120]["body"].startswith("<!-- steelyard -->\n### Steelyard: 1 slower\n")
    assert github.read_text(encoding="utf-8") == forge.comments[120]["body"]
    (made.folder / "program").write_text("#!/bin/sh\nexec sleep 0.01\n", encoding="utf-8")
    made.commit("repaired")
    assert gate() == 0
    assert "comment: renewed" in capsys.readouterr().err
    assert len(forge.comments) == 121
    assert forge.comments[120]["body"].startswith("<!-- steelyard -->\n### Steelyard: 1 equivalent\n")
    assert forge.comments[3]["body"].endswith("a stranger wrote this")
    assert {each.name for each in (made.folder / "steelyard-results" / "gate").iterdir()} == {
        "comment.md",
        "junit.xml",
        "verdicts.json",
    }


def test_a_build_that_fails_replaces_the_verdicts_of_before(
    made: MadeRepository, github: Path, forge: Forge
) -> None:
    assert gate("--build", "echo 'no `such` header' && exit 1") == 4
    assert forge.comments[0]["body"].startswith(
        "<!-- steelyard -->\n### Steelyard: no verdict\n\n    cannot build"
    )
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
    github: Path,
    forge: Forge,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str | None,
    value: Any,
    reason: str,
) -> None:
    if name is None:
        forge.refuses = value
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
        "CI_PROJECT_ID": "5",
        "CI_MERGE_REQUEST_IID": "3",
        "GITLAB_TOKEN": "t",
    }
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    assert gate() == 1
    assert "::error" not in capsys.readouterr().out
    assert len(forge.comments) == 1
    forge.comments[0]["user"] = None
    forge.comments[0]["author"] = {"username": "project_5_bot_9f"}
    assert gate() == 1
    assert len(forge.comments) == 1


def test_outside_of_a_job_the_files_are_written(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate() == 1
    assert "not posted: this is no job of GitHub or GitLab" in capsys.readouterr().err
    assert (made.folder / "steelyard-results" / "gate" / "junit.xml").exists()
