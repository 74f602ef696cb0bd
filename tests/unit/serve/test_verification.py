"""What came of a verification outlives the server, and says nothing about other files."""

from __future__ import annotations

import asyncio
import os
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.postgresql import missing, served
from steelyard.catalogue import Catalogue, Verified
from steelyard.catalogue.folder import folder_state
from steelyard.record.labels import Labels, write_labels

pytest.importorskip("starlette", reason="needs the extra `serve`")

from steelyard.serve.catalogue_source import FolderResults, Results
from steelyard.serve.computing import Computing
from steelyard.serve.verification import Verifications

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = Path(__file__).parents[2] / "fixtures" / "packages"
POSTGRESQL = pytest.param(
    "postgresql",
    marks=[
        pytest.mark.needs_postgres,
        pytest.mark.skipif(missing() is not None, reason=str(missing())),
        pytest.mark.timeout(60),
    ],
)


@pytest.fixture(params=["sqlite", POSTGRESQL])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "catalogue.sqlite")
    else:
        with served() as place:
            yield place


@pytest.fixture
def result(tmp_path: Path) -> Path:
    with zipfile.ZipFile(PACKAGES / "steelyard-0.1.0-compare.zip") as package:
        package.extractall(tmp_path / "package")
    return Path(shutil.move(tmp_path / "package" / "result", tmp_path / "results" / "one"))


def known(results: Results, identifier: str, folder: Path) -> Verified | None:
    return asyncio.run(Verifications(results).of(identifier, folder))


async def verified(results: Results, identifier: str, folder: Path) -> Verified:
    verifications = Verifications(results)
    assert await verifications.begin(identifier, folder)
    while verifications.is_busy:
        await asyncio.sleep(0.05)
    found = await verifications.of(identifier, folder)
    assert found is not None
    return found


@pytest.mark.long("a result is computed again in a process of its own")
@pytest.mark.timeout(120)
def test_a_verification_outlives_the_server_and_not_a_change(address: str, result: Path) -> None:
    with Catalogue.at(address) as catalogue:
        identifier = catalogue.register(result).id
        assert catalogue.verified(result) is None
    found = asyncio.run(verified(Results(address), identifier, result))
    assert found.state == "confirmed", found
    assert known(Results(address), identifier, result) == found, "another server knows it, with its date"
    assert found.ended is not None

    write_labels(result, Labels(tags=("night",)))
    with Catalogue.at(address) as catalogue:
        catalogue.register(result)
    assert known(Results(address), identifier, result) == found, "a tag changes no finding"

    path = next((result / "measurements").rglob("*.parquet"), result / "runs.parquet")
    status, content = path.stat(), path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert known(Results(address), identifier, result) is None, "raw data of the same size and time"


def test_a_served_folder_is_remembered_where_the_user_has_a_catalogue(
    result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CATALOGUE", str(tmp_path / "own.sqlite"))
    said = Verified("not confirmed", folder_state(result), 1.5, ("`x` differs",), ("`y`",))
    results = FolderResults(result.parent, Computing())
    assert not asyncio.run(results.keep_verified(result, said)), "the user's catalogue does not have it yet"
    with Catalogue.at() as catalogue:
        identifier = catalogue.register(result).id
    assert asyncio.run(results.keep_verified(result, said))
    results.close()
    again = FolderResults(result.parent, Computing())
    found = known(again, identifier, result)
    again.close()
    assert found is not None
    assert (found.state, found.problems, found.not_compared) == (said.state, said.problems, said.not_compared)
    with Catalogue.at() as catalogue:
        catalogue.forget(identifier)
        catalogue.register(result)
        assert catalogue.verified(result) is None, "what was forgotten is not remembered"
