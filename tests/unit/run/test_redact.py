from __future__ import annotations

import pytest

from steelyard.run.executor.outcome import failed_outcome
from steelyard.run.isolation.interface import Availability
from steelyard.run.redact import without_secrets

SECRET = "correct-horse"  # noqa: S105 - the point of the tests


@pytest.mark.parametrize(
    "name",
    ["API_TOKEN", "aws_secret_access_key", "DB_PASSWORD", "SSH_KEY_DATA", "SIGNING_KEY", "GH_PAT", "APIKEY"],
)
def test_the_value_of_a_secret_variable_is_hidden(name: str) -> None:
    assert without_secrets(f"cannot log in with {SECRET}", {name: SECRET}) == "cannot log in with ***"


@pytest.mark.parametrize("name", ["PATH", "HOME", "PWD", "LANG", "KEYBOARD", "MONKEY"])
def test_an_ordinary_variable_stays_readable(name: str) -> None:
    assert without_secrets("no such file: /opt/tools", {name: "/opt/tools"}) == "no such file: /opt/tools"


def test_a_secret_that_contains_another_is_hidden_whole() -> None:
    environment = {"A_TOKEN": "horse", "B_TOKEN": "horse-battery"}
    assert without_secrets("horse-battery, horse", environment) == "***, ***"


def test_credentials_in_an_address_are_hidden() -> None:
    text = "proxy http://user:pw@proxy.example:3128 and https://example.org/a@b"
    assert without_secrets(text, {}) == "proxy http://***@proxy.example:3128 and https://example.org/a@b"


def test_what_is_recorded_of_a_probe_or_a_failure_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", SECRET)
    refused = Availability.no(f"login as {SECRET} failed", f"login {SECRET}", f"engine {SECRET}")
    assert SECRET not in repr(refused)
    assert SECRET not in repr(Availability.yes(f"engine {SECRET}"))
    assert SECRET not in repr(failed_outcome("b1", 1, f"the worker ended: {SECRET}"))
