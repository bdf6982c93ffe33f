import pytest
from kernelport.core.errors import ConfigError
from kernelport.devices.device import CPU, Device
from kernelport.devices.select import resolve_device


def never() -> int:
    raise AssertionError("nobody should ask for GPUs")


def test_auto_is_the_first_gpu_that_can_be_used_else_the_cpu() -> None:
    assert resolve_device("auto", lambda: 2) == Device("cuda", 0)
    assert resolve_device("auto", lambda: 0) == CPU


def test_cpu_never_asks_a_framework() -> None:
    assert resolve_device("cpu", never) == CPU


def test_a_gpu_that_is_there_is_taken() -> None:
    assert resolve_device("cuda:1", lambda: 2) == Device("cuda", 1)
    assert resolve_device("cuda", lambda: 1) == Device("cuda", 0)


def test_a_gpu_that_is_not_there_says_what_is() -> None:
    with pytest.raises(ConfigError, match=r"device cuda:2 does not exist.*only 2 .cuda:0 to cuda:1."):
        resolve_device("cuda:2", lambda: 2)
    with pytest.raises(ConfigError, match=r"can use none; check nvidia-smi"):
        resolve_device("cuda:0", lambda: 0)


@pytest.mark.parametrize("text", ["gpu", "cuda:-1", "cuda:01", "CPU", "", "cuda:1 ", "cuda:٣", "cuda:99999"])
def test_other_names_are_refused_with_the_accepted_ones(text: str) -> None:
    with pytest.raises(ConfigError, match="use cpu or cuda:N"):
        resolve_device(text, never)
