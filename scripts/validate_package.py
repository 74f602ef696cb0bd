"""Have others check unpacked packages: `.tools/validators/bin/python scripts/validate_package.py FOLDER ...`.

Nothing is fetched. The validator of RO-Crates serves web addresses from its cache in offline mode; the one
address that it asks for, the context of RO-Crate 1.1, is put there from the copy that comes with the library
`rocrate` (a later version of the same terms).
"""

import io
import sys
import tempfile
from pathlib import Path

import requests
import rocrate
import urllib3
from cffconvert.citation import Citation
from jsonschema.exceptions import ValidationError
from requests.adapters import BaseAdapter
from requests_cache import CachedSession
from rocrate.rocrate import ROCrate
from rocrate_validator import models, services

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
PROFILE = "process-run-crate-0.5"


class Shelf(BaseAdapter):
    """Answers with the context that comes with the library."""

    def send(self, request: requests.PreparedRequest, **_: object) -> requests.Response:
        content = (Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld").read_bytes()
        answer = requests.Response()
        answer.status_code = 200
        answer.url, answer.request = request.url or "", request
        answer.headers["Content-Type"] = "application/ld+json"
        answer._content = content  # noqa: SLF001 - there is no other way to fill it
        answer.raw = urllib3.HTTPResponse(
            io.BytesIO(content), dict(answer.headers), 200, preload_content=False, request_url=request.url
        )
        return answer

    def close(self) -> None:
        return


def fill(cache: Path) -> None:
    session = CachedSession(
        str(cache), backend="sqlite", expire_after=-1, allowable_methods=("GET",), allowable_codes=(200,)
    )
    session.mount("https://", Shelf())
    session.get(CONTEXT, headers={"Accept": "application/ld+json, application/json, */*;q=0.1"})
    session.close()


def crate_is_valid(folder: Path, cache: Path) -> bool:
    settings = services.ValidationSettings(
        rocrate_uri=str(folder),
        profile_identifier=PROFILE,
        requirement_severity=models.Severity.REQUIRED,
        cache_path=cache,
        offline=True,
    )
    issues = services.validate(settings).get_issues()
    for issue in issues:
        print(f"  {issue.check.identifier}: {issue.message}")
    return not issues


def citation_is_valid(folder: Path) -> bool:
    try:
        Citation((folder / "CITATION.cff").read_text()).validate()
    except (ValidationError, ValueError) as error:
        print(f"  {error.args[0]}")
        return False
    return True


def is_read_again(folder: Path) -> bool:
    crate = ROCrate(folder)
    files = [entity for entity in crate.data_entities if "File" in entity.type]
    actions = crate.root_dataset["mentions"]
    print(f"  `{crate.name}`: {len(files)} files, {len(actions)} actions")
    return all((folder / entity.id).is_file() for entity in files) and bool(files) and bool(actions)


def main() -> int:
    is_valid = [_is_valid(Path(word)) for word in sys.argv[1:]]
    return 0 if all(is_valid) else 1


def _is_valid(folder: Path) -> bool:
    with tempfile.TemporaryDirectory() as place:
        cache = Path(place) / "cache"
        fill(cache)
        answers = {
            f"rocrate-validator, {PROFILE}": crate_is_valid(folder, cache),
            "cffconvert, Citation File Format 1.2.0": citation_is_valid(folder),
            "rocrate": is_read_again(folder),
        }
    for name, is_valid in answers.items():
        print(f"{name}: {'valid' if is_valid else 'NOT VALID'}")
    return all(answers.values())


if __name__ == "__main__":
    raise SystemExit(main())
