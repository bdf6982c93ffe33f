import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernelport.devices import cpu


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("max 100000\n", None),
        ("200000 100000\n", 2.0),
        ("150000 100000", 1.5),
        ("50000 100000", 0.5),
        ("100000", 1.0),
        ("", None),
        ("0 100000", None),
        ("200000 0", None),
        ("-1 100000", None),
        ("nonsense", None),
        ("२ 100000", None),
    ],
)
def test_version_2_quota(text: str, cores: float | None) -> None:
    assert cpu.parse_cpu_max(text) == cores


@pytest.mark.parametrize(
    ("quota", "period", "cores"),
    [("-1\n", "100000\n", None), ("400000\n", "100000\n", 4.0), ("25000", "100000", 0.25), ("", "", None)],
)
def test_version_1_quota(quota: str, period: str, cores: float | None) -> None:
    assert cpu.parse_cfs_quota(quota, period) == cores


def test_membership_of_both_versions() -> None:
    text = "12:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n0::/user.slice\nbroken\n"
    assert cpu.parse_proc_cgroup(text) == {
        "cpu,cpuacct": "/docker/abc",
        "memory": "/docker/abc",
        "": "/user.slice",
    }


@given(st.text())
def test_files_of_any_content_are_read(text: str) -> None:
    assert all(path.startswith("/") for path in cpu.parse_proc_cgroup(text).values())
    quota = cpu.parse_cpu_max(text)
    assert quota is None or quota > 0


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_smallest_quota_on_the_way_to_the_root_counts(tmp_path: Path) -> None:
    write(tmp_path / "proc", "0::/a/b\n")
    write(tmp_path / "fs" / "a" / "cpu.max", "100000 100000")
    write(tmp_path / "fs" / "a" / "b" / "cpu.max", "300000 100000")
    assert cpu.cgroup_quota(tmp_path / "proc", tmp_path / "fs") == 1.0


def test_inside_a_container_the_root_is_the_own_group(tmp_path: Path) -> None:
    write(tmp_path / "proc", "0::/docker/not/visible/here\n")
    write(tmp_path / "fs" / "cpu.max", "250000 100000")
    assert cpu.cgroup_quota(tmp_path / "proc", tmp_path / "fs") == 2.5


def test_version_1_is_found_under_either_mount_name(tmp_path: Path) -> None:
    write(tmp_path / "proc", "4:cpu,cpuacct:/box\n1:name=systemd:/x\n")
    write(tmp_path / "fs" / "cpu" / "box" / "cpu.cfs_quota_us", "150000")
    write(tmp_path / "fs" / "cpu" / "box" / "cpu.cfs_period_us", "100000")
    assert cpu.cgroup_quota(tmp_path / "proc", tmp_path / "fs") == 1.5


def test_no_cgroup_files_mean_no_quota(tmp_path: Path) -> None:
    assert cpu.cgroup_quota(tmp_path / "proc", tmp_path / "fs") is None


@pytest.mark.parametrize(("quota", "cores"), [("50000 100000", 1), ("150000 100000", 2), ("max 100000", 8), ("", 8)])
def test_effective_cpus_is_the_smaller_of_affinity_and_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, cores: int
) -> None:
    write(tmp_path / "proc", "0::/\n")
    write(tmp_path / "fs" / "cpu.max", quota)
    monkeypatch.setattr(cpu, "_PROC_CGROUP", tmp_path / "proc")
    monkeypatch.setattr(cpu, "_CGROUP_ROOT", tmp_path / "fs")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert cpu.effective_cpus() == cores


def test_affinity_bounds_the_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "proc", "0::/\n")
    write(tmp_path / "fs" / "cpu.max", "800000 100000")
    monkeypatch.setattr(cpu, "_PROC_CGROUP", tmp_path / "proc")
    monkeypatch.setattr(cpu, "_CGROUP_ROOT", tmp_path / "fs")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert cpu.effective_cpus() == 1


def test_without_affinity_masks_the_core_count_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    assert cpu.effective_cpus() >= 1
