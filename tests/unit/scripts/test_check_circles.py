"""Files that import each other in a circle are found in both languages, and nothing else is."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
problems = runpy.run_path(str(ROOT / "scripts" / "check_circles.py"))["problems"]


def found(folder: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    said = problems(folder / "src", folder / "crates")
    return [line.partition(";")[0].removeprefix("files in a circle ") for line in said]


def in_python(**modules: str) -> dict[str, str]:
    return {f"src/package/{name}.py": text for name, text in {"__init__": "", **modules}.items()}


def in_rust(**modules: str) -> dict[str, str]:
    paths = {f"crates/crate/src/{name.replace('__', '/')}.rs": text for name, text in modules.items()}
    return {"crates/crate/Cargo.toml": "", **paths}


def test_python_modules_in_a_circle_are_named(tmp_path: Path) -> None:
    files = in_python(
        one="from package.two import name", two="import package.three", three="from package import one"
    )
    assert found(tmp_path, files) == ["(Python): package.one, package.three, package.two"]


@pytest.mark.parametrize("line", ["if TYPE_CHECKING:\n    {}", "def late():\n    {}"])
def test_an_import_for_types_or_within_a_function_closes_a_circle(tmp_path: Path, line: str) -> None:
    files = in_python(one="from package.two import name", two=line.format("from package.one import Type"))
    assert found(tmp_path, files) == ["(Python): package.one, package.two"]


def test_python_modules_in_order_pass(tmp_path: Path) -> None:
    files = in_python(
        one="from package import two, three", two="from package.three import name", three="import json"
    )
    assert found(tmp_path, files) == []


def test_rust_files_in_a_circle_are_named(tmp_path: Path) -> None:
    files = in_rust(
        lib="mod one;\nmod two;\nmod three;\n",
        one="use crate::two::{self, Two};\nfn of() {}\n",
        two="pub struct Two;\nfn by() { super::three::by() }\n",
        three="use crate::{one::of as from_one};\npub fn by() {}\n",
    )
    assert found(tmp_path, files) == ["(crate crate): one, three, two"]


def test_a_module_and_its_part_that_name_each_other_are_a_circle(tmp_path: Path) -> None:
    files = in_rust(
        lib="mod part;\n",
        part="mod inner;\npub struct Whole;\nfn by(of: inner::Inner) {}\n",
        part__inner="use super::Whole;\npub struct Inner(Whole);\n",
    )
    assert found(tmp_path, files) == ["(crate crate): part, part::inner"]


def test_a_module_may_hand_on_what_its_parts_define(tmp_path: Path) -> None:
    files = in_rust(
        lib="mod part;\npub use part::{Inner, Other};\n",
        part="mod inner;\nmod other;\npub use inner::Inner;\npub use other::*;\n",
        part__inner="pub struct Inner;\n",
        part__other="use super::Inner;\npub struct Other(Inner);\n",
    )
    assert found(tmp_path, files) == []


def test_a_circle_through_what_is_handed_on_is_found(tmp_path: Path) -> None:
    files = in_rust(
        lib="mod part;\nmod user;\n",
        part="mod inner;\npub use inner::*;\n",
        part__inner="use crate::user::User;\npub struct Inner(User);\n",
        user="use crate::part::Inner;\npub struct User;\n",
    )
    assert found(tmp_path, files) == ["(crate crate): part::inner, user"]


@pytest.mark.parametrize(
    "text",
    [
        "// crate::one::One\n",
        '/* crate::one::One */ const TEXT: &str = "crate::one::One";\n',
        "#[cfg(test)]\nmod tests {\n    use crate::one::One;\n    fn by() { let _ = One {}; }\n}\n",
        "#[cfg(test)]\nuse crate::one::One;\n",
        "use other::one::One;\n",
    ],
)
def test_what_is_no_code_of_the_program_is_no_dependency(tmp_path: Path, text: str) -> None:
    files = in_rust(
        lib="mod one;\nmod two;\n",
        one="use crate::two::Two;\npub struct One;\n",
        two=f"pub struct Two;\n{text}",
    )
    assert found(tmp_path, files) == []


def test_a_crate_within_a_crate_is_looked_at(tmp_path: Path) -> None:
    files = in_rust(lib="mod one;\n", one="")
    files["crates/crate/inner/Cargo.toml"] = ""
    files["crates/crate/inner/src/one.rs"] = "use crate::two::by;\npub fn of() {}\n"
    files["crates/crate/inner/src/two.rs"] = "use crate::one::of;\npub fn by() {}\n"
    assert found(tmp_path, files) == ["(crate crate/inner): one, two"]
