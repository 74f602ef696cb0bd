from __future__ import annotations

import pytest

from steelyard.errors import InternalError
from steelyard.model.finding import Estimate, Finding
from steelyard.report.sentence import ANY_VERDICT, Phrasing, enumerate_findings, fill, join
from steelyard.report.slots import AbsentSlotError


def finding(name: str = "f/1", verdict: str = "slower", **facts: str | float | None) -> Finding:
    ratio = Estimate(1.07, "ratio", "welch", 1.05, 1.09, 0.95)
    return Finding(
        name, "shift", {"isolation": "docker"}, verdict, {"ratio": ratio}, facts, (), ("few: five blocks",)
    )


def text(template: str, about: Finding) -> str:
    return "".join(part.text for part in fill(template, about))


def test_slots_are_filled_with_units() -> None:
    words = "{subject.isolation} is {verdict}: {estimates.ratio:change} ({estimates.ratio:change_interval})"
    assert text(words, finding()) == "docker is slower: 7 % more (95 % interval +5 % to +9 %)"


def test_a_slot_that_does_not_exist_is_an_error_that_names_the_ones_that_do() -> None:
    with pytest.raises(AbsentSlotError, match=r"no slot `subject.workload`.*subject.isolation"):
        fill("{subject.workload}", finding())


def test_a_style_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(AbsentSlotError, match="slot style `furlongs`"):
        fill("{estimates.ratio:furlongs}", finding())


def test_a_bracketed_clause_is_left_out_when_its_slot_is_empty_but_not_when_it_is_zero() -> None:
    words = "grows[ at {facts.at:workers}]"
    assert text(words, finding(at=None)) == "grows"
    assert text(words, finding(at=4)) == "grows at 4 workers"
    assert text(words, finding(at=0)) == "grows at 0 workers"


def test_an_absent_slot_inside_a_clause_is_still_an_error() -> None:
    with pytest.raises(AbsentSlotError):
        fill("grows[ at {facts.at}]", finding())


def test_an_estimate_without_a_value_reads_na() -> None:
    empty = Finding("f", "shift", {}, "NA", {"ratio": Estimate(None, "ratio", "none")})
    assert text("{estimates.ratio} {estimates.ratio:change} {estimates.ratio:interval}", empty) == "NA NA NA"


def test_a_statement_carries_its_finding_and_its_warnings() -> None:
    said = Phrasing({"shift": {ANY_VERDICT: "{subject.isolation}: {estimates.ratio}"}}).say(finding())
    assert said.findings == ("f/1",)
    assert said.warnings == ("few: five blocks",)
    assert [part.text for part in said.parts if part.is_value] == ["1.0700"]


def test_a_verdict_chooses_its_template_before_the_general_one() -> None:
    phrasing = Phrasing({"shift": {"slower": "slow", ANY_VERDICT: "other"}})
    assert phrasing.say(finding()).text == "slow"
    assert phrasing.say(finding(verdict="faster")).text == "other"


def test_a_claim_without_a_sentence_is_an_error() -> None:
    with pytest.raises(InternalError, match="no sentence for claim `shift` with verdict `slower`"):
        Phrasing({}).say(finding())


def test_lists_name_each_finding_and_warn_once() -> None:
    three = [finding(f"f/{number}") for number in range(3)]
    said = join("names: ", enumerate_findings(three, "{subject.isolation}"), ".", findings=three)
    assert said.text == "names: docker, docker and docker."
    assert said.findings == ("f/0", "f/1", "f/2")
    assert said.warnings == ("few: five blocks",)
