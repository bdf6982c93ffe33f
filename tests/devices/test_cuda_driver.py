import ctypes
from typing import Any

import pytest
from kernelport.devices.cuda_driver import driver_device_count


class FakeDriver:
    """The three lines of libcuda that matter."""

    def __init__(self, init: int = 0, status: int = 0, devices: int = 2) -> None:
        self.cuInit = lambda flags: init
        self._status, self._devices = status, devices

    def cuDeviceGetCount(self, pointer: Any) -> int:
        pointer._obj.value = self._devices
        return self._status


@pytest.mark.parametrize(
    ("driver", "count"),
    [
        (FakeDriver(), 2),
        (FakeDriver(devices=0), 0),
        (FakeDriver(init=100), 0),
        (FakeDriver(status=3), 0),
    ],
)
def test_the_driver_tells_how_many_gpus_there_are(
    monkeypatch: pytest.MonkeyPatch, driver: FakeDriver, count: int
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: driver)
    assert driver_device_count() == count


def test_without_a_driver_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert driver_device_count() == 0


@pytest.mark.gpu
def test_a_real_driver_sees_a_gpu() -> None:
    assert driver_device_count() > 0
