"""The text of the platform library that `simgrid_noise` fills in."""

from __future__ import annotations

from typing import Final

SOURCE_TEXT: Final = r"""// SimGrid platform of the cost model @NAME@ with its noise. Written by Steelyard.
//
//   g++ -O1 -std=c++17 -shared -fPIC @SOURCE@ -lsimgrid -o @LIBRARY@
//   smpirun -np 2 -platform ./@LIBRARY@ -hostfile hosts --cfg=@PRECISION@:1e-12 ./program
//
// Each message takes the model's time multiplied by a ratio that is drawn from the quantiles of its
// size, the largest ones from a Pareto law where a heavy tail was found. The ratios were measured on
// round trips, so a message that answers one of the same size at once takes over its ratio.
// STEELYARD_SEED in the environment chooses other draws.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <unordered_set>
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

constexpr double bandwidth = @BANDWIDTH@;  // bytes/s
constexpr double latency   = @LATENCY@;  // s
constexpr double detached  = @DETACHED@;  // bytes; the send of smaller messages is charged apart
constexpr double envelope  = 16;  // bytes SMPI adds to a message
constexpr double least     = 1e-9;  // s, what is left of a transfer that the send outlasts

struct Row { double above, first, second; };
struct Tail { double share, threshold, shape, scale; };
struct Table { double above; std::vector<double> quantiles; Tail tail; };

// Above which size with envelope, factor of latency, factor of bandwidth.
const std::vector<Row> sections = {
@SECTIONS@};
// Above which size, what a send costs: seconds and seconds per byte.
const std::vector<Row> overheads = {
@OVERHEADS@};
// Above which size, measured time over model at equidistant probabilities, and the law of the largest
// ratios: their share (0: none), threshold, shape and scale.
const std::vector<Table> tables = {
@TABLES@};
const std::vector<std::string> settings = {
@OPTIONS@};

template <class T> const T& of(const std::vector<T>& rows, double size)
{
  const T* found = &rows.front();
  for (const T& row : rows) {
    if (size <= row.above)
      break;
    found = &row;
  }
  return *found;
}

std::uint64_t seed()
{
  const char* given = std::getenv("STEELYARD_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : @SEED@;
}

// One ratio per message. Both callbacks see every message once and in the same order: each has its
// own copy, and both draw the same.
class Draws {
  std::uint64_t state_ = seed();
  const sg4::Host* from_ = nullptr;
  const sg4::Host* to_   = nullptr;
  double size_ = -1;
  double ratio_ = 1;

  double uniform()  // splitmix64 (Steele, Lea and Flood 2014)
  {
    std::uint64_t word = (state_ += 0x9e3779b97f4a7c15ULL);
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>((word ^ (word >> 31)) >> 11) * 0x1p-53;
  }

public:
  double next(double size, const sg4::Host* from, const sg4::Host* to)
  {
    if (size == size_ && from == to_ && to == from_) {
      from_ = to_ = nullptr;
      return ratio_;
    }
    const Table& table = of(tables, size - envelope);
    const std::vector<double>& quantiles = table.quantiles;
    const Tail& tail = table.tail;
    double drawn = uniform();
    double place = drawn * static_cast<double>(quantiles.size() - 1);
    auto below = static_cast<std::size_t>(place);
    double part = place - static_cast<double>(below);
    size_ = size;
    from_ = from;
    to_ = to;
    if (1 - drawn < tail.share) {
      double power = std::pow((1 - drawn) / tail.share, -tail.shape);
      return ratio_ = tail.threshold + tail.scale * (power - 1) / tail.shape;
    }
    return ratio_ = quantiles[below] * (1 - part) + quantiles[below + 1] * part;
  }
};

// What the transfer is multiplied by, so that transfer and send together take `ratio` times as long.
double stretch(double size, double ratio)
{
  const Row& section = of(sections, size);
  double transfer = latency * section.first + size / (bandwidth * section.second);
  double send = 0;
  if (size - envelope < detached) {
    const Row& overhead = of(overheads, size - envelope);
    send = overhead.first + overhead.second * (size - envelope);
  }
  return std::max(ratio * (transfer + send) - send, least) / transfer;
}

using Links = std::vector<sg4::Link*>;
using Zones = std::unordered_set<sg4::NetZone*>;

double latency_factor(double size, const sg4::Host* from, const sg4::Host* to, const Links&, const Zones&)
{
  static Draws draws;
  return of(sections, size).first * stretch(size, draws.next(size, from, to));
}

double bandwidth_factor(double size, const sg4::Host* from, const sg4::Host* to, const Links&, const Zones&)
{
  static Draws draws;
  return of(sections, size).second / stretch(size, draws.next(size, from, to));
}

}  // namespace

extern "C" void load_platform(const sg4::Engine& engine);
void load_platform(const sg4::Engine& engine)
{
  for (const std::string& setting : settings)
    sg4::Engine::set_config(setting);
#if SIMGRID_VERSION_MAJOR >= 4
  auto* zone   = engine.get_netzone_root()->add_netzone_full("hosts");
  auto* first  = zone->add_host("@FIRST@", 1e9);
  auto* second = zone->add_host("@SECOND@", 1e9);
  auto* link   = zone->add_split_duplex_link("link", bandwidth);
#else
  (void)engine;
  auto* zone   = sg4::create_full_zone("hosts");
  auto* first  = zone->create_host("@FIRST@", 1e9);
  auto* second = zone->create_host("@SECOND@", 1e9);
  auto* link   = zone->create_split_duplex_link("link", bandwidth);
#endif
  link->set_latency(latency);
  link->seal();
#if SIMGRID_VERSION_MAJOR >= 4
  zone->add_route(first, second, {{link, sg4::LinkInRoute::Direction::UP}});
#else
  zone->add_route(first->get_netpoint(), second->get_netpoint(), nullptr, nullptr,
                  {{link, sg4::LinkInRoute::Direction::UP}}, true);
#endif
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
