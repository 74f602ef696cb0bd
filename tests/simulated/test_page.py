"""The page of the documentation says what the simulator says today."""

from simulated.page import PAGE, rendered, source_rows


def test_the_page_is_what_is_simulated() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert rendered(text) == text, "`make simulated-page` writes it anew"


def test_the_source_has_every_policy_at_both_loads() -> None:
    means = {(row.policy, row.load) for row in source_rows() if row.metric == "mean"}
    assert means == {(policy, load) for policy in ("weights", "idle", "be", "fifo") for load in (0.85, 0.95)}
