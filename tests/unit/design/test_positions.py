from __future__ import annotations

import tomllib

from steelyard.design.positions import KeyPath, locate_keys

DOCUMENT = '''# nothing here
title = "a # is no comment"   # but this is
text = """
[not.a.table]
key = "inside"
"""
raw = \'\'\'
x = 1\'\'\'
"quoted key" = 1
'single.key' = 2
a.b."c.d" = 3
dates = [ 1979-05-27 07:32:00, # first
  # a comment with ] inside
  1979-05-28,
]

[table]
inline = { x = 1, y = { z = [1, { deep = "}" }] } }
"escaped\\u0041\\t" = 0

[table.sub.deep]
k = 1

[[fruit]]
name = "apple"
[[fruit.variety]]
name = "red"
[[fruit.variety]]
name = "green"
[[fruit]]
name = "banana"
[fruit.physical]
colour = "yellow"
last = "no line end after this"'''

EXPECTED: dict[KeyPath, int] = {
    ("title",): 2,
    ("text",): 3,
    ("raw",): 7,
    ("quoted key",): 9,
    ("single.key",): 10,
    ("a",): 11,
    ("a", "b", "c.d"): 11,
    ("dates",): 12,
    ("dates", 0): 12,
    ("dates", 1): 14,
    ("table",): 17,
    ("table", "inline", "y", "z", 1, "deep"): 18,
    ("table", "escapedA\t"): 19,
    ("table", "sub"): 21,
    ("table", "sub", "deep", "k"): 22,
    ("fruit", 0): 24,
    ("fruit", 0, "name"): 25,
    ("fruit", 0, "variety", 0, "name"): 27,
    ("fruit", 0, "variety", 1, "name"): 29,
    ("fruit", 1): 30,
    ("fruit", 1, "name"): 31,
    ("fruit", 1, "physical", "colour"): 33,
    ("fruit", 1, "physical", "last"): 34,
}


def paths_of(value: object, here: KeyPath = ()) -> set[KeyPath]:
    """Give every path of a parsed document."""
    if isinstance(value, dict):
        inner = {path for name, each in value.items() for path in paths_of(each, (*here, name))}
    elif isinstance(value, list):
        inner = {path for index, each in enumerate(value) for path in paths_of(each, (*here, index))}
    else:
        inner = set()
    return inner | ({here} if here else set())


def test_every_kind_of_key_is_found_on_its_line() -> None:
    found = locate_keys(DOCUMENT)
    assert {path: found.get(path) for path in EXPECTED} == EXPECTED


def test_the_scanner_finds_exactly_what_the_parser_finds() -> None:
    assert set(locate_keys(DOCUMENT)) == paths_of(tomllib.loads(DOCUMENT))


def test_quotes_before_the_closing_ones_belong_to_the_text() -> None:
    text = 'a = """x"""""\nb = 1\n'
    assert tomllib.loads(text) == {"a": 'x""', "b": 1}
    assert locate_keys(text) == {("a",): 1, ("b",): 2}
