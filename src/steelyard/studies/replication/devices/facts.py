"""What is known of a device, read where its programs are run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from steelyard.run.hosts.device import Device
    from steelyard.studies.replication.devices.placement import Ground

_ASK: Final = """
echo "host=$(uname -n)"
echo "kernel=$(uname -r)"
echo "machine=$(uname -m)"
sed -n 's/^model name[[:space:]]*: /processor=/p;s/^Model[[:space:]]*: /processor=/p' /proc/cpuinfo |
  head -n 1
echo "cpus=$(getconf _NPROCESSORS_ONLN)"
sed -n 's/^MemTotal:[[:space:]]*\\([0-9]*\\) kB/memory_kib=\\1/p' /proc/meminfo
sed -n 's/^/clock_source=/p' /sys/devices/system/clocksource/clocksource0/current_clocksource
echo "storage_kind=$(stat -f -c %T "$1")"
df -Pk "$1" | sed -n '2s/^\\([^ ]*\\) .*/storage_source=\\1/p'
df -Pk "$1" | awk 'NR == 2 {print "storage_free_kib=" $4}'
true
"""


def device_facts(device: Device, ground: Ground) -> dict[str, Any]:
    """Give host, kernel, processor, memory, storage and what was stated of a device.

    Parameters
    ----------
    device : Device
        As the device file states it.
    ground : Ground
        Open.
    """
    pairs = (line.partition("=") for line in ground.look(_ASK).splitlines())
    found: dict[str, Any] = {key: value for key, _, value in pairs if value}
    for key in ("cpus", "memory_kib", "storage_free_kib"):
        if str(found.get(key, "")).isdigit():
            found[key] = int(found[key])
    return {"device": device.name, "kind": device.kind, "is_played": device.is_played, **found}
