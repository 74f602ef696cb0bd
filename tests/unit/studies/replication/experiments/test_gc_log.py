from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.studies.replication.experiments.gc_log import GC, SAFEPOINT, Pause, read_pauses

# Logged by OpenJDK 17.0.15 with `-Xlog:gc*,safepoint:file=...:tn`, one collector each.
SERIAL = """\
[63515909000000ns] Using Serial
[63515968851088ns] GC(0) Pause Young (Allocation Failure)
[63515981012000ns] GC(0) DefNew: 17472K(19648K)->2176K(19648K) Eden: 17472K(17472K)->0K(17472K)
[63515981031162ns] GC(0) Pause Young (Allocation Failure) 17M->16M(61M) 12.181ms
[63515981040000ns] GC(0) User=0.01s Sys=0.00s Real=0.01s
[63515981051542ns] Safepoint "GenCollectForAllocation", Time since last: 59141947 ns, \
Reaching safepoint: 6160 ns, Cleanup: 54811 ns, At safepoint: 12219843 ns, Total: 12280814 ns
"""
Z = """\
[63516812530155ns] GC(0) Pause Mark Start 0.009ms
[63516812542654ns] Safepoint "ZMarkStart", Time since last: 104403456 ns, Reaching safepoint: 112898 ns, \
Cleanup: 36955 ns, At safepoint: 34321 ns, Total: 184174 ns
"""
SHENANDOAH = """\
[63517232295457ns] GC(0) Pause Init Mark (unload classes)
[63517232311641ns] GC(0) Pause Init Mark (unload classes) 0.016ms
[63517235499984ns] Pause Init Mark (G)                  92 us
"""
G1 = """\
[63518505106791ns] GC(5) Pause Young (Concurrent Start) (G1 Evacuation Pause)
[63518513188150ns] GC(5) Pause Young (Concurrent Start) (G1 Evacuation Pause) 38M->38M(64M) 8.079ms
[63518513200000ns] GC(6) Concurrent Mark Cycle
[63518533483262ns] GC(6) Pause Remark
[63518534131674ns] GC(6) Pause Remark 51M->35M(64M) 0.648ms
[63518536000000ns] GC(6) Concurrent Mark Cycle 23.456ms
"""
YOUNG = "Pause Young (Concurrent Start) (G1 Evacuation Pause)"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (
            SERIAL,
            [
                Pause(63515968770728, 12280814, SAFEPOINT, "GenCollectForAllocation"),
                Pause(63515968851088, 12181000, GC, "Pause Young (Allocation Failure)"),
            ],
        ),
        (
            Z,
            [
                Pause(63516812358480, 184174, SAFEPOINT, "ZMarkStart"),
                Pause(63516812521155, 9000, GC, "Pause Mark Start"),
            ],
        ),
        (SHENANDOAH, [Pause(63517232295457, 16000, GC, "Pause Init Mark (unload classes)")]),
        (
            G1,
            [
                Pause(63518505106791, 8079000, GC, YOUNG),
                Pause(63518533483262, 648000, GC, "Pause Remark"),
            ],
        ),
    ],
    ids=["serial", "z", "shenandoah", "g1"],
)
def test_the_pauses_of_each_collector_are_found(log: str, expected: list[Pause]) -> None:
    assert read_pauses(log.splitlines(keepends=True)) == expected


def test_a_collection_that_never_ended_is_no_pause() -> None:
    assert read_pauses(["[5ns] GC(0) Pause Young (Normal) (G1 Evacuation Pause)"]) == []


def test_a_line_that_was_cut_off_is_passed_over() -> None:
    whole = SERIAL.splitlines()
    assert read_pauses([*whole[:-1], whole[-1][:-20]]) == read_pauses(whole[:-1])


@given(
    st.lists(
        st.tuples(st.integers(1_000_000, 2**62), st.integers(0, 999_999), st.booleans()),
        max_size=20,
        unique_by=lambda each: each[0],
    )
)
def test_whatever_is_logged_is_read_back(pauses: list[tuple[int, int, bool]]) -> None:
    lines, expected = [], []
    for number, (start_ns, length_us, is_announced) in enumerate(pauses):
        length_ns = length_us * 1000
        said = f"{length_us // 1000}.{length_us % 1000:03}ms"
        if is_announced:
            lines.append(f"[{start_ns}ns] GC({number}) Pause Full (System.gc())")
        # Some time goes by before a pause is logged, of which nothing is known without its begin.
        late_ns = 70 if is_announced else 0
        lines.append(
            f"[{start_ns + length_ns + late_ns}ns] GC({number}) Pause Full (System.gc()) 9M->1M(64M) {said}"
        )
        expected.append(Pause(start_ns, length_ns, GC, "Pause Full (System.gc())"))
    assert read_pauses(lines) == sorted(expected, key=lambda each: each.start_ns)


@given(st.lists(st.text(max_size=60), max_size=5))
def test_no_text_is_an_error(lines: list[str]) -> None:
    assert all(pause.duration_ns >= 0 for pause in read_pauses([f"[7ns] {each}" for each in lines]))
