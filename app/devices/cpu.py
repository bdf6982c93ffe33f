"""How many CPU cores this process may really use: affinity and container quota. Runs on: anywhere (reads files)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path

_CGROUP_ROOT = Path("/sys/fs/cgroup")
_PROC_CGROUP = Path("/proc/self/cgroup")


def effective_cpus() -> int:
    """min(cores in the affinity mask, cgroup quota rounded up), at least 1.

    The host's core count is a trap in containers: 40 threads under a quota of 4 are stopped most of each period.
    """
    quota = cgroup_quota(_PROC_CGROUP, _CGROUP_ROOT)
    cores = _affinity()
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def cgroup_quota(proc_cgroup: Path, root: Path) -> float | None:
    """The smallest CPU quota, in cores, from the process's own cgroup up to the root; None when there is none.

    Inside a container the paths of `proc_cgroup` may not exist below `root` (the root is the container's own
    group then), so missing folders are simply skipped.
    """
    membership = parse_proc_cgroup(_read(proc_cgroup))
    quotas = []
    if "" in membership:
        quotas += [parse_cpu_max(_read(folder / "cpu.max")) for folder in _upwards(root, membership[""])]
    for controller, path in membership.items():
        if "cpu" in controller.split(","):
            for mount in (root / controller, root / "cpu"):
                quotas += [
                    parse_cfs_quota(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))
                    for folder in _upwards(mount, path)
                ]
    known = [quota for quota in quotas if quota is not None]
    return min(known) if known else None


def parse_proc_cgroup(text: str) -> Mapping[str, str]:
    """`/proc/self/cgroup` as {controllers: path}; version 2's only line has controllers ""."""
    membership = {}
    for line in text.splitlines():
        _number, _, rest = line.partition(":")
        controllers, separator, path = rest.partition(":")
        if separator and path.startswith("/"):
            membership[controllers] = path
    return membership


def parse_cpu_max(text: str) -> float | None:
    """Version 2's `cpu.max`: "200000 100000" is 2.0 cores, "max 100000" no limit."""
    quota, _, period = text.strip().partition(" ")
    return _ratio(quota, period or "100000")


def parse_cfs_quota(quota: str, period: str) -> float | None:
    """Version 1's two files: quota -1 is no limit."""
    return _ratio(quota.strip(), period.strip())


def _ratio(quota: str, period: str) -> float | None:
    if not (quota.isascii() and quota.isdigit() and period.isascii() and period.isdigit()):
        return None
    if int(quota) == 0 or int(period) == 0:
        return None
    return int(quota) / int(period)


def _upwards(root: Path, path: str) -> list[Path]:
    parts = [part for part in path.split("/") if part not in ("", "..", ".")]
    return [root.joinpath(*parts[:count]) for count in range(len(parts), -1, -1)]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""  # no such file in this cgroup version, or not ours to read: no limit known


def _affinity() -> int:
    try:
        return len(os.sched_getaffinity(0)) or 1
    except AttributeError:  # macOS has no affinity masks
        return os.cpu_count() or 1
