from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from steelyard.errors import DataError
from steelyard.studies.replication.devices.roles import place_of
from steelyard.studies.replication.experiments.call_program import CONFIGURATIONS, CallProgram, call_program
from steelyard.studies.replication.experiments.micro import BENCHMARKS, jmh_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.studies.replication.devices.interface import Place

AGENTS = ("kieker-2.0.2-aspectj.jar", "opentelemetry-javaagent-2.33.1.jar")
CALLS: dict[str, Any] = {"calls": 100, "warm_up_calls": 50, "depth": 10, "method_ns": 7}
JMH = {"warm_up_iterations": 1, "iterations": 2, "iteration_ms": 30}


@pytest.fixture
def place() -> Iterator[Place]:
    asked = {
        "setting": {"name": "native", "roles": {"app": {"device": "here", "storage": "memory"}}},
        "devices": {"here": {"kind": "local", "storages": {"memory": "memory"}}},
    }
    with place_of(asked, "app") as made:
        yield made


def program(place: Place, configuration: str, *, of_causes: bool = False, **asked: object) -> CallProgram:
    return call_program(configuration, {**CALLS, **asked}, place, AGENTS, of_causes=of_causes)


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_each_configuration_is_one_language_and_records_unless_it_says_otherwise(
    place: Place, configuration: str
) -> None:
    made = program(place, configuration)
    assert made.is_java is ("java" in made.command)
    assert made.is_java is not ("python" in configuration)
    assert ("--record" in made.command) is made.is_recorded is not configuration.endswith("unrecorded")
    assert bool(made.record_mark) is configuration.endswith("writing")
    assert made.command[made.command.index("--warm-up-calls") + 1] == "50"


@pytest.mark.parametrize(
    ("configuration", "options"),
    [
        ("kieker-inactive", {"-Dkieker.monitoring.enabled=false"}),
        (
            "kieker-collecting",
            {
                "-Dkieker.monitoring.enabled=true",
                "-Dkieker.monitoring.writer=kieker.monitoring.writer.dump.DumpWriter",
            },
        ),
        ("opentelemetry-java-inactive", {"-Dotel.sdk.disabled=true"}),
        ("opentelemetry-java-collecting", {"-Dotel.traces.exporter=none"}),
        ("opentelemetry-java-writing", {"-Dotel.traces.exporter=experimental-otlp/stdout"}),
    ],
)
def test_a_probe_is_what_its_framework_calls_it(place: Place, configuration: str, options: set[str]) -> None:
    words = program(place, configuration).command
    assert options <= set(words)
    assert sum(word.startswith("-javaagent:") for word in words) == 1


def test_a_program_without_a_probe_has_no_agent(place: Place) -> None:
    assert not any(word.startswith("-javaagent") for word in program(place, "none-baseline").command)


def test_only_the_calls_of_causes_handle_objects(place: Place) -> None:
    plain = program(place, "none-baseline").command
    caused = program(place, "none-baseline", of_causes=True).command
    planted = program(place, "none-baseline", of_causes=True, planted="allocation").command
    assert "--allocate" not in plain
    sizes = [int(words[words.index("--allocate") + 1]) for words in (caused, planted)]
    assert 0 < sizes[0] < sizes[1]


def test_what_an_intervention_asks_for_reaches_the_program(place: Place) -> None:
    words = program(
        place,
        "none-baseline",
        of_causes=True,
        jvm_options=["-XX:+UseParallelGC", "-Xmx64m"],
        app_options=["--object-pools"],
        cpus=[0, 2],
        nice=-5,
    ).command
    assert words[:6] == ("taskset", "--cpu-list", "0,2", "nice", "-n", "-5")
    assert words[-1] == "--object-pools"
    # The later one of two options counts for Java: the asked one.
    assert words.index("-Xmx64m") > words.index("-Xmx256m")


def test_an_unknown_configuration_names_the_known_ones(place: Place) -> None:
    with pytest.raises(DataError, match=r"`strange`.*kieker-writing"):
        program(place, "strange")
    with pytest.raises(DataError, match=r"`strange`.*file-io"):
        jmh_command("strange", JMH, place)


def test_an_agent_that_was_not_fetched_is_named_with_its_repair(place: Place) -> None:
    with pytest.raises(DataError, match="agent of kieker") as caught:
        call_program("kieker-writing", CALLS, place, AGENTS[1:], of_causes=False)
    assert caught.value.hint == "make deps-replication"


@pytest.mark.parametrize("configuration", BENCHMARKS)
def test_a_microbenchmark_is_one_fork_with_the_options_of_its_configuration(
    place: Place, configuration: str
) -> None:
    words = jmh_command(configuration, {**JMH, "jvm_options": ["-Xss1m"]}, place)
    assert words[words.index("-f") + 1] == "1"
    options = words[words.index("-jvmArgs") + 1].split()
    assert options == [*BENCHMARKS[configuration][1], "-Xss1m"]
    assert ("-p" in words) is configuration.startswith("file-")
    assert ("access=direct" in words) is (configuration == "file-direct")
