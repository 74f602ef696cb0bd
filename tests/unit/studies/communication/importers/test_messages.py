"""Recordings of messages: which columns are taken for what, what becomes a round trip, what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard.errors import DataError, UsageError
from steelyard.record.importers.interface import importer
from steelyard.record.importers.reading import ReadOptions
from steelyard.record.published import read_published
from steelyard.record.tables import read_runs
from steelyard.studies.communication.trace import Operation, read_trace

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.record.importers.interface import ImportSummary
    from steelyard.studies.communication.trace import Trace

LEGS = """seq,op,size,start0,end0,start1,end1
0,ping,2,5411214,5416582,5410709,5417520
0,pong,2,5416582,5423403,5417520,5422317
1,ping,14888,5471614,5478895,5471640,5483538
1,pong,14888,5478895,5499000,5483538,5490000
"""


def importing(form: str, files: dict[str, str], folder: Path, **options: Any) -> ImportSummary:
    paths = []
    for name, text in files.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        if ".s" not in name:
            paths.append(path)
    found: Any = importer(form)
    summary: ImportSummary = found.import_files(paths, folder / "r", ReadOptions(**options))
    return summary


def trace_of(folder: Path, batch: int = 0) -> Trace:
    return read_trace(folder / f"r/traces/{batch:06d}.01")


def read(text: str, folder: Path, form: str = "messages", **options: Any) -> Trace:
    importing(form, {"a.csv": text}, folder, **options)
    return trace_of(folder)


def rows(trace: Trace, rank: int = 0) -> list[tuple[int, ...]]:
    names = ("op", "size", "start_ns", "mid_ns", "end_ns")
    records = trace.endpoints[rank].operations
    return [tuple(int(record[name]) for name in names) for record in records]


def test_two_legs_are_one_round_trip_with_the_stamps_of_both_ends(tmp_path: Path) -> None:
    trace = read(LEGS, tmp_path)
    shift = 1
    assert rows(trace) == [
        (Operation.PINGPONG, 2, 5411214 + shift, 5416582 + shift, 5423403 + shift),
        (Operation.PINGPONG, 14888, 5471614 + shift, 5478895 + shift, 5499000 + shift),
    ]
    assert rows(trace, 1)[0] == (
        Operation.PINGPONG,
        2,
        5410709 + shift,
        5417520 + shift,
        5422317 + shift,
    )


@pytest.mark.parametrize(
    "text",
    [
        LEGS.replace("\n", "\r\n"),
        "\ufeff" + LEGS,
        LEGS.replace(",", ";"),
        LEGS.replace(",", "\t"),
        LEGS.replace(",", "  "),
        "# by hand\n" + LEGS + "\n\n",
        LEGS.replace("ping", "Ping").replace("pong", "PONG"),
        "\n".join([LEGS.splitlines()[0], *reversed(LEGS.splitlines()[1:])]),
        "\n".join(",".join(reversed(line.split(","))) for line in LEGS.splitlines()),
        "\n".join(line.split(",", 1)[1] for line in LEGS.splitlines()),
        LEGS.replace("start0", "start0_ns").replace("size", "bytes"),
    ],
    ids=[
        "windows",
        "mark",
        "semicolon",
        "tab",
        "blanks",
        "comments",
        "capitals",
        "unsorted",
        "columns",
        "no-seq",
        "names",
    ],
)
def test_order_of_lines_and_columns_line_ends_and_delimiters_change_nothing(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "b").mkdir()
    assert rows(read(text, tmp_path), 1) == rows(read(LEGS, tmp_path / "b"), 1)


def test_seconds_with_decimals_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    text = "op,size,start,end\nsend,1,1524485924.123456789,1524485924.123456999\n"
    trace = read(text, tmp_path, unit="s")
    assert rows(trace)[0][2:] == (1524485924123456790, 0, 1524485924123457000)


def test_stamps_before_zero_move_both_clocks_together(tmp_path: Path) -> None:
    text = "size,start0,end0,start1,end1\n8,-100,20,-130,40\n"
    trace = read(text, tmp_path, unit="ns", operation="stream")
    assert rows(trace)[0][2:] == (31, 0, 151)
    assert rows(trace, 1)[0][2:] == (1, 0, 171)


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("# OSU MPI Latency Test v7.3\n# Size          Latency (us)\n0   1.25\n1   1.5\n", "", 1250),
        ("#bytes #repetitions  t[usec]   Mbytes/sec\n 0 1000 0.85 0.00\n 1 1000 0.9 1.1\n", "", 850),
        ("0 98\n1 100\n", "us", 98_000),
        ("bytes;latency_ms\n0;0.5\n", "", 500_000),
        ("Message Size,Avg Latency(us)\n0,7\n", "", 7000),
    ],
)
def test_tables_of_other_tools_name_size_unit_and_time_in_their_heading(
    tmp_path: Path, text: str, unit: str, expected: int
) -> None:
    first = rows(read(text, tmp_path, unit=unit))[0]
    assert (first[0], first[1], first[4] - first[2]) == (Operation.STREAM, 0, expected)


def test_columns_may_be_named_or_numbered(tmp_path: Path) -> None:
    trace = read("7,x,5\n9,y,6\n", tmp_path, unit="ns", columns={"size": "1", "time": "3"})
    assert [(row[1], row[4] - row[2]) for row in rows(trace)] == [(7, 5), (9, 6)]
    (tmp_path / "b").mkdir()
    trace = read("n,t1,t2\n7,1,5\n", tmp_path / "b", columns={"size": "n", "start": "t1", "end": "t2"})
    assert [(row[1], row[4] - row[2]) for row in rows(trace)] == [(7, 4)]


def test_an_operation_that_is_stated_makes_round_trips_of_times(tmp_path: Path) -> None:
    trace = read("size,time_us\n1,10\n2,12\n", tmp_path, operation="pingpong")
    assert (trace.timed, trace.timed_as) == (Operation.PINGPONG, "half a round trip")
    assert rows(trace)[0][0] == Operation.PINGPONG


def test_messages_of_two_ranks_are_taken_with_both_ends(tmp_path: Path) -> None:
    text = (
        "65536 MPI_Send 0.1 0.1000042 MPI_Recv -0.05 0.2\n"
        "0 MPI_Barrier 0.3 0.4 MPI_Barrier 0.3 0.4\n"
        "7 MPI_Send 0.3 0.31 MPI_Recv 0.2 0.32\n"
    )
    for form in ("zoo", "messages"):
        (tmp_path / form).mkdir()
        trace = read(text, tmp_path / form, form)
        shift = 50_000_001
        assert rows(trace)[0] == (Operation.STREAM, 65536, 100_000_000 + shift, 0, 100_004_200 + shift)
        assert rows(trace, 1)[0] == (Operation.STREAM, 65536, 1, 0, 200_000_000 + shift)
        assert len(rows(trace)) == 2
        assert trace.timed_as == "the sending call of a message"


def test_calls_of_mpi_are_operations_with_and_without_a_heading(tmp_path: Path) -> None:
    text = "MPI_Send,1024,0.5,3.2e-06\nMPI_Isend,1024,0.75,4e-06\nMPI_Recv,8,0.5,1e-6\nMPI_Test,1,1,1e-7\n"
    for form, heading in (
        ("mpi", ""),
        ("mpi", "op,size,start,duration\n"),
        ("messages", "op,size,start,time_s\n"),
    ):
        folder = tmp_path / f"{form}{len(heading)}"
        folder.mkdir()
        trace = read(heading + text, folder, form, **({"unit": "s"} if form == "messages" else {}))
        assert [(row[0], row[1], row[4] - row[2]) for row in rows(trace)] == [
            (Operation.SEND, 1024, 3200),
            (Operation.ISEND, 1024, 4000),
            (Operation.RECV, 8, 1000),
            (Operation.TEST, 1, 100),
        ]
        assert len(trace.endpoints[1].operations) == 0


def test_a_receive_that_began_with_its_send_is_a_round_trip(tmp_path: Path) -> None:
    text = "MPI_Send,9,32.4,5e-03\nMPI_Recv,9,32.4,8e-03\nMPI_Send,1,32.5,1e-6\nMPI_Recv,1,32.5,3e-6\n"
    trace = read(text, tmp_path, "mpi")
    assert [(row[0], row[1], row[3] - row[2], row[4] - row[2]) for row in rows(trace)] == [
        (Operation.PINGPONG, 9, 5_000_000, 8_000_000),
        (Operation.PINGPONG, 1, 1000, 3000),
    ]


def test_files_of_other_operations_complete_a_replication(tmp_path: Path) -> None:
    files = {
        "1.csv": "MPI_Send,9,1,1e-3\n",
        "2.csv": "MPI_Recv,9,2,1e-3\n",
        "3.csv": "MPI_Send,8,3,1e-3\n",
    }
    summary = importing("mpi", files, tmp_path)
    assert (summary.runs, summary.measurements) == (2, 3)
    assert [row[0] for row in rows(trace_of(tmp_path))] == [Operation.SEND, Operation.RECV]
    assert [row["block"] for row in read_runs(tmp_path / "r").to_pylist()] == [0, 1]


def test_parameters_of_plogp_are_operations_and_need_a_unit(tmp_path: Path) -> None:
    text = "# bytes os or g\n0: 5.1 6.2 9 0.5\n1024 5.3 6.9 12.5\n"
    with pytest.raises(UsageError, match="allowed: `ns`, `us`, `ms`, `s`"):
        read(text, tmp_path, "plogp")
    trace = read(text, tmp_path, "plogp", unit="us")
    assert [(row[0], row[1], row[4] - row[2]) for row in rows(trace)] == [
        (Operation.SEND, 0, 5100),
        (Operation.SEND, 1024, 5300),
        (Operation.RECV, 0, 6200),
        (Operation.RECV, 1024, 6900),
        (Operation.STREAM, 0, 9000),
        (Operation.STREAM, 1024, 12500),
    ]
    assert trace.repetitions == (0, 0)
    assert trace.timed_as == "the gap between messages (PLogP)"


def test_each_result_of_skampi_is_a_transport_of_means(tmp_path: Path) -> None:
    text = (
        '# begin result "Pingpong_Send_Recv"\n'
        "count= 1 4 109.2 0.2 32 106.7 107.7\ncount= 2 8 110.0 0.4 64 1 2\n"
        '# begin result "Bcast"\ncount= 1 root= 0 4 20.5 0.1 8 1 2\n'
    )
    summary = importing("skampi", {"s.dat": text}, tmp_path)
    assert (summary.cells, summary.runs, summary.measurements) == (2, 2, 3)
    trips, others = trace_of(tmp_path), trace_of(tmp_path, 1)
    assert (trips.repetitions, trips.timed) == ((32, 64), Operation.PINGPONG)
    assert [row[4] - row[2] for row in rows(trips)] == [109_200, 110_000]
    assert others.timed_as == "`Bcast root=0`, as SkaMPI times it"
    published = read_published(tmp_path / "r")
    assert published is not None
    assert published.num_rows == 3 * 4


PROBES = "send0,time1,recv0\n5000000,7000000,5010000\n5500000,7500000,5512000\n"


def test_probes_and_marks_of_waiting_beside_a_recording_are_taken(tmp_path: Path) -> None:
    marks = "seq,t0,run_delay0_ns,t1,run_delay1_ns\n0,5400000,0,5400100,3\n1,5450000,20,5450100,5\n"
    files = {"a.csv": LEGS, "a.sync.csv": PROBES, "a.sched.csv": marks}
    importing("messages", files, tmp_path)
    trace = trace_of(tmp_path)
    assert trace.probes["seq"].tolist() == [0, 2]
    assert (trace.probes["time1"] - trace.probes["send0"]).tolist() == [2_000_000, 2_000_000]
    assert trace.endpoints[0].blocks["run_delay_ns"].tolist() == [0, 20]
    assert trace.endpoints[1].blocks["run_delay_ns"].tolist() == [3, 5]


def test_a_file_of_probes_is_read_with_its_recording_alone(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="contains clock probes, which are read with the recording"):
        read(PROBES, tmp_path)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "line 1: the file is empty"),
        ("# a comment\n", "line 1: the file is empty"),
        ("seq,op,size,start0,end0,start1,end1\n", "no value in the file"),
        ("a,b\n1,2\n", "line 1: no column of the size; columns are: `a`, `b`"),
        ("size,op\n1,send\n", "line 1: no column of times"),
        ("size,start0,end0,start1\n1,2,3,4\n", None),
        (LEGS.replace("14888", "-5"), "lines 4-5: size is `-5`; expected a whole number from 0"),
        (LEGS.replace("14888", "1.5"), "lines 4-5: size is `1.5`"),
        (LEGS.replace("5478895,5499000", "5478895,nan"), "line 5: end0 is `nan`; expected a number"),
        (LEGS.replace("5478895,5499000", "5478895,inf"), "line 5: end0 is `inf`; expected a number"),
        (LEGS.replace("5478895,5499000", "5478895,"), "line 5: end0 is ``; expected a number"),
        (LEGS.replace("5478895,5499000", "5478895,1"), "line 5: end0 is `1`; expected no time before start0"),
        (LEGS.replace("5478895,5499000", "1,2"), "line 5: pong ends before its ping"),
        (LEGS.replace("1,pong,14888", "1,pong,14889"), "line 5: pong has 14889 bytes; expected the 14888"),
        (LEGS.replace("1,pong", "1,bong"), "line 5: op is `bong`; allowed: `ping`, `pong`, `pingpong`"),
        (LEGS.replace("1,ping", "0,ping"), "line 4: seq is `0`, as in line 2; expected each number once"),
        ("size,time_us\n1,10,5\n", "line 2: 3 fields; expected 2, as the heading has"),
        (LEGS + "2,ping,5,1\n", "line 6: 4 fields; expected at least 7"),
        (
            LEGS.replace("5411214", "9" * 25),
            "line 2: start0 is `9999999999999999999999999`; expected at most",
        ),
        ("size,time_us\n1,-1\n", "line 2: time_us is `-1`; expected a number from 0"),
        ("size,start,end\n1,5,4\n", "line 2: end is `4`; expected no time before the begin"),
    ],
)
def test_damage_is_named_with_line_column_and_what_is_allowed(
    tmp_path: Path, text: str, part: str | None
) -> None:
    if part is None:
        assert rows(read(text, tmp_path)) == [(Operation.STREAM, 1, 3, 0, 4)]
        return
    with pytest.raises(DataError) as caught:
        read(text, tmp_path)
    assert part in caught.value.message
    assert str(tmp_path / "a.csv") in caught.value.message
    assert (caught.value.hint or "").startswith("expected ")
    assert not (tmp_path / "r").exists()


def test_a_leg_without_the_other_one_is_left_out_and_counted(tmp_path: Path) -> None:
    text = LEGS + "2,ping,9,5600000,5600100,5600000,5600300\n"
    summary = importing("messages", {"a.csv": text}, tmp_path)
    assert summary.measurements == 2
    lost = "1 of 5 legs of round trips were left out, of 9 B: 1 `ping` without its `pong`"
    assert lost in summary.notes


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            LEGS.replace("pong", "ping")
            .replace("0,ping,2,5416582", "2,ping,2,5416582")
            .replace("1,ping,14888,5478895", "3,ping,14888,5478895"),
            "cannot join legs to round trips: 4 `ping` without its `pong`",
        ),
        (
            "\n".join(line for line in LEGS.splitlines() if "ping" not in line),
            "cannot join legs to round trips: 2 `pong` without its `ping`",
        ),
    ],
)
def test_legs_that_give_no_round_trip_are_refused(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(DataError) as caught:
        read(text, tmp_path)
    assert part in caught.value.message


@pytest.mark.parametrize(
    ("text", "options", "part"),
    [
        (
            "size,time_us,time_us\n1,2,3\n",
            {},
            "cannot choose the column of `time` among `time_us`, `time_us`",
        ),
        ("size,time_us,time_ns\n1,2,3\n", {}, "among `time_us`, `time_ns`: name it by `--column time=NAME`"),
        ("size,size,time_us\n1,2,3\n", {}, "cannot choose the column of `size`"),
        ("size,latency_us,duration_ms\n1,2,3\n", {}, "cannot choose the column of `time`"),
        (
            "size,a,a\n1,2,3\n",
            {"columns": {"time": "a"}, "unit": "us"},
            "cannot choose a column `a`: columns 2 and 3 are called so",
        ),
        (
            "size,time\n1,2\n",
            {"columns": {"size": "1", "time": "1"}, "unit": "us"},
            "cannot take column `size` for two roles",
        ),
        (
            "size,time_us\n1,2\n",
            {"unit": "ns"},
            "cannot read column `time_us` in ns: its heading states us; leave out `--unit ns`",
        ),
        ("size,start_us,end_ms\n1,2,3\n", {"unit": "us"}, "cannot read column `end_ms` in us"),
        (
            "op,size,time_us\nMPI_Send,1,2\n",
            {"operation": "pingpong"},
            "line 2: op is `MPI_Send`, and `--operation` states pingpong",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(
    tmp_path: Path, text: str, options: dict[str, Any], part: str
) -> None:
    with pytest.raises(DataError) as caught:
        read(text, tmp_path, **options)
    assert part in caught.value.message
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("size,time_us,time_ns\n1,2,3\n", {"columns": {"time": "time_us"}}),
        ("size,a,a\n1,2,3\n", {"columns": {"time": "2"}, "unit": "us"}),
        ("size,time_us\n1,2\n", {"unit": "us"}),
        ("size,time_us,x,x,\n1,2,,,\n", {}),
        ("op,size,time_us\nMPI_Send,1,2\n", {"operation": "send"}),
    ],
)
def test_what_is_named_or_not_taken_may_be_there_twice(
    tmp_path: Path, text: str, options: dict[str, Any]
) -> None:
    assert [(row[1], row[4] - row[2]) for row in rows(read(text, tmp_path, **options))] == [(1, 2000)]


@pytest.mark.parametrize(
    ("probes", "part"),
    [
        ("send0,time1\n1,2\n", "no column `recv0`"),
        ("send0,time1,recv0\n", "no row below the heading"),
        ("send0,time1,recv0\n5,6,4\n", "line 2: recv0 is before send0"),
        ("send0,time1,recv0\n5,x,9\n", "line 2: time1 is `x`; expected a number"),
        ("send0,time1,recv0\n5,6\n", "line 2: 2 fields; expected at least 3"),
    ],
)
def test_damaged_probes_are_named_with_their_own_file(tmp_path: Path, probes: str, part: str) -> None:
    with pytest.raises(DataError) as caught:
        importing("messages", {"a.csv": LEGS, "a.sync.csv": probes}, tmp_path)
    assert part in caught.value.message
    assert "a.sync.csv" in caught.value.message


def test_a_time_without_unit_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the unit of the times of `time` is not in the file"):
        read("size,time\n1,2\n", tmp_path)
    with pytest.raises(UsageError, match="`start0`"):
        read("size,start0,end0\n1,2.5,3.5\n", tmp_path)


def test_many_messages_are_read_in_linear_time(tmp_path: Path) -> None:
    numbers = np.arange(50_000)
    lines = [f"{at},send,{at % 977},{7 * at},{7 * at + 5},{7 * at},{7 * at + 6}" for at in numbers.tolist()]
    trace = read("\n".join(["seq,op,size,start0,end0,start1,end1", *lines]), tmp_path)
    assert len(trace.endpoints[1].operations) == 50_000


SKAMPI_LINE = (
    '# begin result "Pingpong"\ncount= 1  4  100.0  1.0  16  100.0  100.0\n# end result "Pingpong"\n'
)
ZOO_LINE = "1024 MPI_Send 0.5 0.51 MPI_Recv 0.49 0.52\n"
ONE_END = "op,size,time_us\nsend,1,2\nsend,2,3\n"


@pytest.mark.parametrize(
    ("text", "option", "given"),
    [
        (SKAMPI_LINE, "--unit", {"unit": "us"}),
        (SKAMPI_LINE, "--one-clock", {"is_one_clock": True}),
        (SKAMPI_LINE, "--decimal", {"decimal": ","}),
        (SKAMPI_LINE, "--probes", {"probes": ...}),
        (ZOO_LINE, "--unit", {"unit": "s"}),
        (ZOO_LINE, "--probes", {"probes": ...}),
        (ONE_END, "--probes", {"probes": ...}),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(
    tmp_path: Path, text: str, option: str, given: dict[str, Any]
) -> None:
    if "probes" in given:
        given = {"probes": {tmp_path / "a.csv": tmp_path / "p.csv"}}
    with pytest.raises(UsageError, match=f"^cannot use `{option}`: ") as refused:
        read(text, tmp_path, **given)
    assert refused.value.hint == f"leave out `{option}`"


def test_both_ranks_may_read_one_clock(tmp_path: Path) -> None:
    assert read(ZOO_LINE, tmp_path, is_one_clock=True).endpoints[0].header["is_one_clock"]


@pytest.mark.parametrize(
    ("counts", "expected"), [((1000, 40), (40, 1000)), ((16, 16), (16, 16)), ((1, 1), None)]
)
def test_a_column_of_repetitions_says_that_times_are_means(
    tmp_path: Path, counts: tuple[int, int], expected: tuple[int, int] | None
) -> None:
    text = f"#bytes #repetitions t[usec]\n 1 {counts[0]} 2.5\n 2 {counts[1]} 2.6\n"
    assert read(text, tmp_path).repetitions == expected


def test_a_mean_of_no_repetition_is_damage(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="repetitions is `0`; expected a whole number from 1"):
        read("size,repetitions,time_us\n1,0,2\n", tmp_path)


@pytest.mark.parametrize("sign", [";", "\t", " "])
def test_decimals_may_stand_behind_a_comma(tmp_path: Path, sign: str) -> None:
    text = "\n".join(sign.join(row) for row in (("size", "time_us"), ("1024", "2,5"), ("2048", "3")))
    found = rows(read(text, tmp_path, decimal=","))
    assert [(row[1], row[4] - row[2]) for row in found] == [(1024, 2500), (2048, 3000)]


def test_a_point_among_decimal_commas_is_damage(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read `2\.5` with `--decimal ,`: it has a point"):
        read("size;time_us\n1;2,5\n2;2.5\n", tmp_path, decimal=",")
