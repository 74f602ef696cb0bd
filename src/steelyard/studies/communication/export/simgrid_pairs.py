"""One SimGrid platform of all pairs of nodes that were measured, each with its own model.

SimGrid's options have one curve for the whole platform, so a platform of several models is a C++ library
whose callbacks know between which hosts a message is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError
from steelyard.model.cost_model import read_cost_model
from steelyard.model.finding import read_findings
from steelyard.studies.communication.export.simgrid import to_simgrid
from steelyard.studies.communication.export.simgrid_files import HOSTS, RENAMED, options
from steelyard.studies.communication.pairs import is_pair, nodes_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.model.cost_model import CostModel
    from steelyard.studies.communication.export.simgrid_files import Version
    from steelyard.studies.communication.export.simgrid_model import SimGridModel

SOURCE: Final = "platform_pairs.cpp"
LIBRARY: Final = "libplatform_pairs.so"
_NOT_HERE: Final = frozenset(
    {
        *("smpi/lat-factor", "smpi/bw-factor", "network/latency-factor", "network/bandwidth-factor"),
        *("network/model", "surf/precision", "precision/timing"),
        *("smpi/async-small-thresh", "smpi/send-is-detached-thresh"),
    }
)

_TEXT: Final = r"""// SimGrid platform of @COUNT@ pairs of nodes, each with a model. Written by Steelyard.
//
//   g++ -O1 -std=c++17 -shared -fPIC @SOURCE@ -lsimgrid -o @LIBRARY@
//   smpirun -np 2 -platform ./@LIBRARY@ -hostfile @HOSTS@ --cfg=@PRECISION@:1e-12 ./program
//
// A pair that was not measured has no route: SimGrid ends where a message needs it. What a send costs its
// sender is part of the transfer. Sends of fewer bytes than @DETACHED@ return early, on all pairs.
@REMARKS@
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>
#include <simgrid/version.h>
#if SIMGRID_VERSION < 33400
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#endif

namespace sg4 = simgrid::s4u;

namespace {

struct Row { double above, latency, bandwidth; };
struct Pair { std::string first, second; double bandwidth, latency; std::vector<Row> sections; };

// Hosts, bytes/s and s of the link between them, and its factors above a size with envelope.
const std::vector<Pair> pairs = {
@PAIRS@};
const std::vector<std::string> names = {@NAMES@};
const std::vector<std::string> settings = {
@OPTIONS@};

const Row& section(double size, const sg4::Host* from, const sg4::Host* to)
{
  static const auto known = [] {
    std::map<std::pair<std::string, std::string>, const Pair*> found;
    for (const Pair& pair : pairs)
      found[{pair.first, pair.second}] = found[{pair.second, pair.first}] = &pair;
    return found;
  }();
  const std::vector<Row>& rows = known.at({from->get_name(), to->get_name()})->sections;
  const Row* row = &rows.front();
  for (const Row& each : rows) {
    if (size <= each.above)
      break;
    row = &each;
  }
  return *row;
}

using Links = std::vector<sg4::Link*>;
using Zones = std::unordered_set<sg4::NetZone*>;

double latency_factor(double size, const sg4::Host* from, const sg4::Host* to, const Links&, const Zones&)
{
  return section(size, from, to).latency;
}

double bandwidth_factor(double size, const sg4::Host* from, const sg4::Host* to, const Links&, const Zones&)
{
  return section(size, from, to).bandwidth;
}

}  // namespace

extern "C" void load_platform(const sg4::Engine& engine);
void load_platform(const sg4::Engine& engine)
{
  for (const std::string& setting : settings)
    sg4::Engine::set_config(setting);
  std::map<std::string, sg4::Host*> hosts;
#if SIMGRID_VERSION_MAJOR >= 4
  auto* zone = engine.get_netzone_root()->add_netzone_full("hosts");
  for (const std::string& name : names)
    hosts[name] = zone->add_host(name, 1e9);
#else
  (void)engine;
  auto* zone = sg4::create_full_zone("hosts");
  for (const std::string& name : names)
    hosts[name] = zone->create_host(name, 1e9);
#endif
  for (const Pair& pair : pairs) {
    auto* first  = hosts.at(pair.first);
    auto* second = hosts.at(pair.second);
#if SIMGRID_VERSION_MAJOR >= 4
    auto* link = zone->add_split_duplex_link(pair.first + ":" + pair.second, pair.bandwidth);
#else
    auto* link = zone->create_split_duplex_link(pair.first + ":" + pair.second, pair.bandwidth);
#endif
    link->set_latency(pair.latency);
    link->seal();
#if SIMGRID_VERSION_MAJOR >= 4
    zone->add_route(first, second, {{link, sg4::LinkInRoute::Direction::UP}}, first != second);
#else
    zone->add_route(first->get_netpoint(), second->get_netpoint(), nullptr, nullptr,
                    {{link, sg4::LinkInRoute::Direction::UP}}, first != second);
#endif
  }
#if SIMGRID_VERSION >= 33400
  zone->set_latency_factor_cb(latency_factor);
  zone->set_bandwidth_factor_cb(bandwidth_factor);
#else
  zone->get_network_model()->set_lat_factor_cb(latency_factor);
  zone->get_network_model()->set_bw_factor_cb(bandwidth_factor);
#endif
  zone->seal();
}
"""


@dataclass(frozen=True, slots=True)
class PairModel:
    """The model of one pair.

    Parameters
    ----------
    link : str
        The pair, ``n1:n2``, or ``n1:n1`` for one node.
    name : str
        Name of the model.
    cost : CostModel
        The model.
    others : int
        Models of the same transport and pair in other states of the host.
    """

    link: str
    name: str
    cost: CostModel
    others: int


def pair_models(result: Path, transports: Sequence[str] = ()) -> tuple[PairModel, ...]:
    """Give a model of each pair that was measured: that of the state that most launches were in.

    Parameters
    ----------
    result : Path
        Result folder with findings.
    transports : sequence of str
        Which of them, the first one that a pair has; needed where a pair has several.

    Raises
    ------
    UsageError
        If no pair was measured, a pair has several transports and none was named, or it has none of those.
    DataError
        If the result cannot be read.
    """
    found: dict[str, dict[str, list[tuple[int, str]]]] = {}
    for each in read_findings(result / "findings.json").of("model"):
        link, launches = each.subject["link"], each.facts["replications"]
        if is_pair(link) and isinstance(launches, int):
            of_link = found.setdefault(link, {})
            of_link.setdefault(each.subject["transport"], []).append(
                (-launches, str(each.facts["model_file"]))
            )
    if not found:
        message = f"`{result}` has no model of a pair of nodes"
        hint = "measure some: `steelyard run communication --on slurm:PARTITION --pairs all`"
        raise UsageError(message, hint=hint, code="usage.pairs")
    chosen = []
    for link, of_link in found.items():
        name = next((each for each in transports if each in of_link), None)
        if name is None and not transports and len(of_link) == 1:
            (name,) = of_link
        if name is None:
            message = f"the pair `{link}` has models of {', '.join(f'`{each}`' for each in of_link)}"
            hint = "name transports, e.g. `--model openmpi-tcp,openmpi`: each pair takes the first it has"
            raise UsageError(message, hint=hint, code="usage.pairs")
        (_, file), *others = sorted(of_link[name])
        path = result / file
        chosen.append(PairModel(link, path.stem, read_cost_model(path), len(others)))
    return tuple(chosen)


def platform_files(models: Sequence[PairModel], version: Version) -> dict[str, str]:
    """Give the texts of the platform by the names of their files, for at least one model.

    Raises
    ------
    DataError
        If a model cannot be said to SimGrid.
    """
    exported = [(each, to_simgrid(each.cost)) for each in models]
    names = tuple(dict.fromkeys(name for each in models for name in nodes_of(each.link)))
    values = {
        "COUNT": str(len(models)),
        "SOURCE": SOURCE,
        "LIBRARY": LIBRARY,
        "HOSTS": HOSTS,
        "PRECISION": "precision/timing" if version >= RENAMED else "surf/precision",
        "DETACHED": str(detached_below(exported)),
        "REMARKS": "".join(f"// {remark}\n" for remark in remarks(exported)),
        "PAIRS": ",\n".join(_pair(each.link, simgrid) for each, simgrid in exported),
        "NAMES": ", ".join(f'"{name}"' for name in names),
        "OPTIONS": ",\n".join(f'    "{name}:{value}"' for name, value in _settings(exported, version)),
    }
    text = _TEXT
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return {SOURCE: text, HOSTS: "\n".join(names) + "\n"}


def detached_below(exported: Sequence[tuple[PairModel, SimGridModel]]) -> int:
    """Give below which size sends return early on every pair [bytes]: SimGrid has one for all."""
    return min(simgrid.detached_below for _, simgrid in exported)


def remarks(exported: Sequence[tuple[PairModel, SimGridModel]]) -> list[str]:
    """Say which model each pair has, and what of the models the platform cannot say."""
    found = [
        f"{each.link}: {each.name}"
        + (f", the most common of {each.others + 1} states of the host" if each.others else "")
        for each, _ in exported
    ]
    sizes = {simgrid.detached_below for _, simgrid in exported}
    if len(sizes) > 1:
        found.append(
            f"Sends return early below {', '.join(map(str, sorted(sizes)))} bytes, depending on the pair; "
            "the smallest is taken."
        )
    return found


def _settings(exported: Sequence[tuple[PairModel, SimGridModel]], version: Version) -> list[tuple[str, str]]:
    common = options(exported[0][1], version)
    found = [(name, value) for name, value in common.items() if name not in _NOT_HERE]
    asynchronous = min(simgrid.asynchronous_below for _, simgrid in exported)
    return [
        *found,
        ("smpi/async-small-thresh", str(asynchronous)),
        ("smpi/send-is-detached-thresh", str(detached_below(exported))),
    ]


def _pair(link: str, simgrid: SimGridModel) -> str:
    first, *second = nodes_of(link)
    sections = ", ".join(
        f"{{{latency.above}, {latency.value!r}, {bandwidth.value!r}}}"
        for latency, bandwidth in zip(simgrid.latency_factors, simgrid.bandwidth_factors, strict=True)
    )
    ends = f'"{first}", "{second[0] if second else first}"'
    return f"    {{{ends}, {simgrid.bandwidth_bytes_per_s!r}, {simgrid.latency_s!r}, {{{sections}}}}}"
