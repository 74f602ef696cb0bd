from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from fixtures.cost_models import MODEL
from steelyard.errors import DataError, UsageError
from steelyard.studies.communication.export.simgrid import to_simgrid
from steelyard.studies.communication.export.simgrid_files import (
    option_words,
    options,
    readme_text,
    write_simgrid,
)

if TYPE_CHECKING:
    from pathlib import Path

SIMGRID = to_simgrid(MODEL, "os")


def test_names_of_options_follow_the_version() -> None:
    old, new = options(SIMGRID), options(SIMGRID, (4, 1))
    assert old["smpi/lat-factor"] == new["network/latency-factor"]
    assert old["smpi/bw-factor"] == new["network/bandwidth-factor"]
    assert old["surf/precision"] == new["precision/timing"] == "1e-12"
    # SimGrid 3.32 knows this name, but only as one number.
    assert not {"network/latency-factor", "network/bandwidth-factor"} & set(old)
    assert options(SIMGRID, (3, 34)).keys() == new.keys()
    assert options(SIMGRID, (3, 33)).keys() == old.keys()


def test_a_version_before_these_formats_is_refused() -> None:
    with pytest.raises(UsageError, match=r"SimGrid 3\.31 is too old"):
        options(SIMGRID, (3, 31))


def test_the_platform_has_two_hosts_a_link_and_the_options(tmp_path: Path) -> None:
    written = write_simgrid(tmp_path / "new", SIMGRID)
    assert [path.name for path in written] == ["platform.xml", "options.txt", "hosts", "README.txt"]
    tree = ET.parse(tmp_path / "new/platform.xml").getroot()  # noqa: S314 - our own file
    hosts = [host.get("id") for host in tree.iter("host")]
    assert (tmp_path / "new/hosts").read_text(encoding="utf-8").split() == hosts
    (link,) = tree.iter("link")
    assert link.attrib["bandwidth"] == "5771147662.0Bps"
    assert link.attrib["latency"] == "5.64e-06s"
    props = {prop.attrib["id"]: prop.attrib["value"] for prop in tree.iter("prop")}
    # `smpirun` states these two itself and wins.
    expected = {name: value for name, value in options(SIMGRID).items() if name not in props}
    assert set(expected) == {"network/model", "surf/precision"}
    assert props.items() <= options(SIMGRID).items()
    # The way back is implied; SimGrid refuses a route that is declared twice.
    assert len(list(tree.iter("route"))) == 1


def test_options_are_words_of_a_command_line(tmp_path: Path) -> None:
    write_simgrid(tmp_path, SIMGRID)
    words = (tmp_path / "options.txt").read_text(encoding="utf-8").split()
    assert words == option_words(SIMGRID)
    assert all(word.startswith("--cfg=") for word in words)


def test_the_readme_names_the_command_and_what_is_approximate() -> None:
    text = readme_text(SIMGRID)
    assert "smpirun -np 2 -platform platform.xml -hostfile hosts --cfg=surf/precision:1e-12 ./program" in text
    assert "1195 to 29920 bytes: a power law; chords instead" in text
    assert "--cfg=precision/timing:1e-12" in readme_text(SIMGRID, (3, 36))


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="cannot write"):
        write_simgrid(tmp_path / "file", SIMGRID)
