"""The cause tree as a design: an ordered list of interventions, each one change of the program as it is.

Every intervention is a cell of its own and changes the program of `AS_IT_IS` alone, not what another one has
changed already: whatever spikes less then does so because of this change.

References
----------
.. [1] Knoche & Eichelberger (2018), Using the Raspberry Pi and Docker for Replicable Performance
   Experiments, ICPE: cause tree (object pools, parallel garbage collector, measurement of time, one CPU
   core, no recursion). `raised-priority` and `alone` are additions of ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.studies.replication.options import ReplicationOptions

AS_IT_IS: Final = "as-it-is"
"""The program unchanged: what every intervention is compared with."""

RAISED_NICE: Final = -10


@dataclass(frozen=True, slots=True)
class Intervention:
    """One change.

    Parameters
    ----------
    name : str
        Name of the configuration.
    sentence : str
        What is changed, and what it takes away, as one sentence.
    change : mapping
        Parameters of the program that it sets, by name; lists of options are added to those there are.
    """

    name: str
    sentence: str
    change: Mapping[str, Any] = field(default_factory=dict)

    def applied_to(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Give the parameters of the changed program.

        Examples
        --------
        >>> one = Intervention("flat", "Calls itself no more.", {"depth": 1, "jvm_options": ["-Xint"]})
        >>> one.applied_to({"depth": 10, "nice": 0, "jvm_options": ["-ea"]})
        {'depth': 1, 'nice': 0, 'jvm_options': ['-ea', '-Xint']}
        """
        added = {name: [*parameters.get(name, ()), *self.change[name]] for name in _LISTS & set(self.change)}
        return {**parameters, **self.change, **added}


_LISTS: Final = frozenset({"jvm_options", "app_options"})

BUILT_IN: Final = (
    Intervention(AS_IT_IS, "The program as it is."),
    Intervention(
        "object-pools",
        "Uses the objects that calls handle again instead of making new ones: little is left to collect.",
        {"app_options": ["--object-pools"]},
    ),
    Intervention(
        "parallel-gc",
        "Collects garbage with several threads.",
        {"jvm_options": ["-XX:+UseParallelGC"]},
    ),
    Intervention(
        "clock",
        "Takes one stamp per call instead of two: a call begins where the one before ended.",
        {"app_options": ["--clock", "one"]},
    ),
    Intervention("one-core", "Binds the whole program to one CPU: nothing can migrate.", {"cpus": [0]}),
    Intervention("no-recursion", "Calls the monitored method once instead of recursively.", {"depth": 1}),
    Intervention(
        "raised-priority",
        f"Raises the program's priority (nice {RAISED_NICE}): other processes hardly interrupt it.",
        {"nice": RAISED_NICE},
    ),
    Intervention("alone", "Ends the job that stands beside the program.", {"planted": "none"}),
)
"""In the order in which they are reported."""


def interventions_of(options: ReplicationOptions, first_cpu: int) -> tuple[Intervention, ...]:
    """Give the interventions of a study in their order, the unchanged program first.

    Raises
    ------
    UsageError
        If a name is not known, or an own intervention has a built-in name.
    """
    known = {each.name: each for each in BUILT_IN}
    own = [_own(each.name, each.sentence, each.change(), known) for each in options.interventions]
    known["one-core"] = Intervention("one-core", known["one-core"].sentence, {"cpus": [first_cpu]})
    every = {**known, **{each.name: each for each in own}}
    asked: Sequence[str] = options.causes or tuple(every)
    strange = [name for name in asked if name not in every]
    if strange:
        message = f"`causes` names `{strange[0]}`; allowed: {', '.join(f'`{name}`' for name in every)}"
        raise UsageError(message, hint="describe your own under [[interventions]] of the study file")
    return tuple(every[name] for name in dict.fromkeys((AS_IT_IS, *asked)))


def _own(name: str, sentence: str, change: dict[str, Any], known: Mapping[str, object]) -> Intervention:
    if name in known:
        message = f"`interventions` describes `{name}`, which already exists"
        raise UsageError(message, hint="give it another name")
    if not change:
        message = f"the intervention `{name}` changes nothing"
        raise UsageError(message, hint="give it depth, method_ns, jvm_options, app_options, cpus or nice")
    return Intervention(name, sentence, change)
