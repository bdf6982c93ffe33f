import pytest
from kernelport.core.errors import ConfigError
from kernelport.devices.device import CPU, Device


@pytest.mark.parametrize("text", ["cpu", "cuda:0", "cuda:15"])
def test_text_and_device_are_two_forms_of_one_thing(text: str) -> None:
    assert str(Device.parse(text)) == text


def test_a_bare_cuda_is_the_first_gpu() -> None:
    assert Device.parse("cuda") == Device("cuda", 0)
    assert Device.parse("cpu") == CPU


def test_anything_else_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="'tpu:0' is not known"):
        Device.parse("tpu:0")
