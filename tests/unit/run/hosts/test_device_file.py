"""The device file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import StudyFileError
from steelyard.run.hosts import device_file
from steelyard.run.hosts.device import KINDS, Device
from steelyard.run.hosts.device_file import default_devices, read_devices

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "devices.md"


def _read(folder: Path, text: str) -> dict[str, Device]:
    path = folder / "devices.toml"
    path.write_text(text, encoding="utf-8")
    return read_devices(path)


def test_the_example_of_the_page_is_read(tmp_path: Path) -> None:
    example = PAGE.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    found = _read(tmp_path, example)
    assert [(one.name, one.kind, one.is_played) for one in found.values()] == [
        ("D1", "local", False),
        ("D2", "played", True),
        ("D3", "ssh", False),
    ]
    assert (found["D2"].cpus, found["D2"].cpu_percent, found["D2"].memory_mib) == ((1,), 70, 2048)
    assert found["D3"].ssh_options == ("-p", "2222")
    assert list(found["D3"].storages) == ["card", "usb"]
    assert found["D1"].storages["H2"] == "memory"


def test_every_key_and_kind_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for key in (*device_file._READERS, *KINDS):
        assert f"`{key}`" in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["`devices` must contain at least one table"]),
        ("[device.D1]\nkind='local'\n", ["line 1: `device` is unknown; known: `devices`"]),
        ("[devices.D1]\n", ["line 1: `devices.D1` lacks `kind`; allowed: `local`, `played`, `ssh`"]),
        ("[devices.D1]\nkind = 'playd'\n", ["line 2: `devices.D1.kind` is `playd`; allowed:"]),
        ("[devices.D-1]\nkind = 'local'\n", ["line 1: `devices.D-1` is not a name"]),
        (
            "[devices.D1]\nkind = 'ssh'\nhots = 'a'\n",
            ["line 3: `devices.D1.hots` is unknown; did you mean `host`?"],
        ),
        ("[devices.D1]\nkind = 'ssh'\n", ["line 1: `devices.D1` lacks `host`"]),
        ("[devices.D1]\nkind = 'ssh'\nhost = '-oProxyCommand=x'\n", ["expected `[USER@]HOST`"]),
        (
            "[devices.D1]\nkind = 'local'\ncpus = [1]\n",
            ["line 3: `devices.D1.cpus` is a limit, which kind `local`"],
        ),
        ("[devices.D1]\nkind = 'played'\n", ["lacks a limit, one of `cpus`, `cpu_percent`, `memory_mib`"]),
        (
            "[devices.D1]\nkind = 'played'\ncpus = []\n",
            ["line 3: `devices.D1.cpus` is []; expected a list of CPU"],
        ),
        ("[devices.D1]\nkind = 'played'\ncpus = [true]\n", ["expected a list of CPU numbers"]),
        (
            "[devices.D1]\nkind = 'played'\ncpu_percent = 0\n",
            ["is 0; expected a whole number from 1 to 100000"],
        ),
        ("[devices.D1]\nkind = 'played'\nmemory_mib = 1.5\n", ["is 1.5; expected a whole number from 64"]),
        ("[devices.D1]\nkind = 'local'\nstorages = { H1 = 'x' }\n", ["line 3:", "begins with / or ~/"]),
        ("[devices.D1]\nkind = 'local'\nstorages = {}\n", ["expected a table of folders by name"]),
        ("devices = 3\n", ["must contain at least one table"]),
        ("[devices]\nD1 = 3\n", ["line 2: `devices.D1` must be a table"]),
        (
            "[devices.D1]\nkind = 'x'\n[devices.D2]\nkind = 'played'\ncpu_percent = 'a'\n",
            ["has 2 problems:", "line 2:", "line 5:"],
        ),
        ("[devices.D1", ["devices.toml`: Expected ']'"]),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_what_is_allowed(
    tmp_path: Path, text: str, said: list[str]
) -> None:
    with pytest.raises(StudyFileError) as caught:
        _read(tmp_path, text)
    for words in said:
        assert words in caught.value.message
    assert caught.value.hint == "the format is in docs/reference/devices.md"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyFileError, match=r"cannot read the device file .*absent\.toml`: No such file"):
        read_devices(tmp_path / "absent.toml")


def test_two_cpus_play_two_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    devices, why = default_devices()
    assert [(one.cpus, one.cpu_percent, one.is_played) for one in devices.values()] == [
        ((0,), None, True),
        ((1,), 70, True),
    ]
    assert "played by this host" in why


def test_one_cpu_is_the_host_and_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3})
    devices, why = default_devices()
    assert (devices["D1"].kind, devices["D2"].cpus, devices["D2"].cpu_percent) == ("local", (3,), 70)
    assert "one usable CPU" in why


@given(
    cpus=st.none() | st.lists(st.integers(0, 64), min_size=1).map(tuple),
    percent=st.none() | st.integers(1, 400),
    options=st.lists(st.text(max_size=5)).map(tuple),
    storages=st.dictionaries(st.text(max_size=4), st.text(max_size=8), min_size=1),
)
def test_a_device_survives_json(
    cpus: tuple[int, ...] | None, percent: int | None, options: tuple[str, ...], storages: dict[str, str]
) -> None:
    device = Device("D", "played", cpus, percent, None, "h", options, "", storages)
    assert Device.from_document("D", json.loads(json.dumps(device.document()))) == device
