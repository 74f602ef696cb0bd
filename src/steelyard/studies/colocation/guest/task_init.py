"""What the first process of a guest of tasks does: a script of a static shell.

It mounts what experiments with the scheduler need, runs one task after the other and sends what each left
over a paravirtual port: lines, and behind each line ``end NAME CODE SIZE`` so many bytes of a packed folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.run.guest.initramfs import Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUPS: Final = "/sys/fs/cgroup/trials"
"""Folder of the guest below which a task may make control groups with the cpu controller."""
TASKS: Final = "steelyard/tasks"
OUTPUT: Final = "steelyard/out"
LOG: Final = "log.txt"
FOLDERS: Final = (
    *("bin", "dev", "etc", "proc", "root", "run", "sys", "tmp", "var", "var/tmp", "lib", "lib64", "usr"),
    *("usr/bin", "usr/lib", "steelyard", "steelyard/bin", TASKS, OUTPUT),
)

INIT: Final = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/steelyard/bin:/bin HOME=/root GROUPS_FOLDER={GROUPS}
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t debugfs debug /sys/kernel/debug
mount -t tracefs trace /sys/kernel/tracing 2>/dev/null
ip link set lo up
echo "+cpu +cpuset +memory +pids" > /sys/fs/cgroup/cgroup.subtree_control
mkdir {GROUPS}
echo +cpu > {GROUPS}/cgroup.subtree_control
exec 3>/dev/vport0p1
# What the kernel still does after the boot is not to meet the first task.
sleep 2
for task in /{TASKS}/*; do
  read -r name limit < "$task/task"
  OUT=/{OUTPUT}/$name
  export OUT
  mkdir -p "$OUT"
  echo "start $name" >&3
  ( cd "$OUT" && exec timeout -s TERM -k 10 "$limit" sh "$task/script" ) </dev/null >"/tmp/log" 2>&1 3>&-
  code=$?
  kill -9 -1
  mv /tmp/log "$OUT/{LOG}"
  tar -C /{OUTPUT} -cf - "$name" | gzip -1 > /tmp/packed
  rm -rf "$OUT"
  echo "end $name $code $(wc -c < /tmp/packed)" >&3
  cat /tmp/packed >&3
done
echo done >&3
exec 3>&-
poweroff -f
"""


def task_entries(busybox: bytes, programs: Sequence[Entry], tasks: Sequence[Entry]) -> list[Entry]:
    """Give everything in such a guest's file system.

    `programs` come with their libraries and the folders that they need above `FOLDERS`; `tasks` are put below
    `TASKS`.
    """
    return [
        *(Entry.folder(name) for name in FOLDERS),
        Entry.character_device("dev/console", (5, 1)),
        Entry.character_device("dev/null", (1, 3)),
        Entry.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n"),
        Entry.file("etc/group", b"root:x:0:\n"),
        Entry.file("etc/hosts", b"127.0.0.1 localhost\n"),
        Entry.file("bin/busybox", busybox, 0o755),
        Entry.file("init", INIT.encode(), 0o755),
        *programs,
        *tasks,
    ]
