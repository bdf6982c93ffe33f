"""tritonclient's own request and response code against the decoder and encoder, without a server."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tritonclient.http as client
from infer_bodies import MODEL, array_of, request, response
from kernelport.core.request import InferenceRequest, RequestedOutput
from kernelport.core.tensor import BF16, BYTES, DATATYPES, DataType, Tensor
from kernelport.protocol.v2_decode import decode_request
from kernelport.protocol.v2_encode import encode_response

VALUES: dict[str, list[Any]] = {
    "BOOL": [True, False, True, True],
    "BYTES": [b"a", b"", "h\u00e9".encode(), b"xyz"],
    **{one.name: [0, 1, 2, one.maximum] for one in DATATYPES.values() if one.maximum},
    **{name: [0.5, -2.0, 0.0, 1.5] for name in ("FP16", "FP32", "FP64")},
}
PLAIN = [one for one in DATATYPES.values() if one is not BF16]


def _decode(inputs: list[client.InferInput], **options: Any) -> InferenceRequest:
    body, length = client.InferenceServerClient.generate_request_body(inputs, **options)
    return decode_request(body, length, MODEL)


def _input(datatype: DataType, binary: bool, name: str = "x") -> tuple[client.InferInput, Any]:
    array = array_of(datatype, VALUES[datatype.name], [2, 2])
    tensor = client.InferInput(name, [2, 2], datatype.name)
    tensor.set_data_from_numpy(array, binary_data=binary)
    return tensor, array


@pytest.mark.parametrize("datatype", PLAIN, ids=repr)
@pytest.mark.parametrize("binary", [False, True])
def test_its_inputs_arrive(datatype: DataType, binary: bool) -> None:
    tensor, array = _input(datatype, binary)
    decoded = _decode([tensor]).inputs["x"]
    assert decoded.datatype is datatype
    assert decoded.array.dtype == datatype.dtype
    assert (decoded.array == array).all()


def test_its_bfloat16_inputs_arrive() -> None:
    tensor = client.InferInput("x", [2], "BF16")
    tensor.set_data_from_numpy(np.array([1.0, -2.0], ml_dtypes.bfloat16), binary_data=True)
    assert _decode([tensor]).inputs["x"].array.tolist() == [0x3F80, 0xC000]


def test_its_bare_nan_arrives() -> None:
    tensor = client.InferInput("x", [2], "FP32")
    tensor.set_data_from_numpy(np.array([np.nan, np.inf], np.float32), binary_data=False)
    array = _decode([tensor]).inputs["x"].array
    assert np.isnan(array[0])
    assert np.isinf(array[1])


def test_mixed_inputs_and_all_its_options_arrive() -> None:
    inputs = [
        _input(DATATYPES[name], binary, name)[0] for name, binary in (("INT8", True), ("FP32", False), ("BYTES", True))
    ]
    outputs = [
        client.InferRequestedOutput("y"),
        client.InferRequestedOutput("z", binary_data=False, class_count=3),
    ]
    options = {"sequence_id": 5, "sequence_start": True, "priority": 2, "timeout": 700, "parameters": {"mine": "v"}}
    decoded = _decode(inputs, outputs=outputs, request_id="7", **options)
    assert list(decoded.inputs) == ["INT8", "FP32", "BYTES"]
    assert decoded.outputs == (RequestedOutput("y", True), RequestedOutput("z", False, 3))
    assert (decoded.id, decoded.priority, decoded.timeout_us) == ("7", 2, 700)
    assert decoded.parameters == {"sequence_id": 5, "sequence_start": True, "sequence_end": False, "mine": "v"}


def test_without_named_outputs_it_wants_all_of_them_binary() -> None:
    decoded = _decode([_input(DATATYPES["INT8"], True)[0]])
    assert decoded.outputs is None
    assert decoded.binary_output


def _result(binary: bool, *tensors: Tensor) -> client.InferResult:
    encoded = encode_response(response(*tensors), request(id="9", binary_output=binary), MODEL, "null")
    return client.InferenceServerClient.parse_response_body(b"".join(encoded.parts), header_length=encoded.json_length)


@pytest.mark.parametrize("datatype", PLAIN, ids=repr)
@pytest.mark.parametrize("binary", [False, True])
def test_it_reads_every_datatype(datatype: DataType, binary: bool) -> None:
    array = array_of(datatype, VALUES[datatype.name], [2, 2])
    result = _result(binary, Tensor("y", datatype, array))
    read = result.as_numpy("y")
    assert read.shape == (2, 2)
    if datatype is BYTES and not binary:
        read = np.array([one.encode() for one in read.ravel()], object).reshape(2, 2)
    assert (read == array).all()
    assert result.get_response()["id"] == "9"


def test_it_reads_bfloat16() -> None:
    read = _result(True, Tensor("y", BF16, np.array([0x3F80, 0xC000], "<u2"))).as_numpy("y")
    assert read.astype(np.float32).tolist() == [1.0, -2.0]


def test_it_reads_null_back_as_nan() -> None:
    read = _result(False, Tensor("y", DATATYPES["FP32"], np.array([np.nan, 1], "<f4"))).as_numpy("y")
    assert np.isnan(read[0])
    assert read[1] == 1


def test_it_reads_several_outputs_and_empty_ones() -> None:
    tensors = [
        Tensor("a", DATATYPES["INT64"], np.zeros((0, 4), "<i8")),
        Tensor("b", BYTES, array_of(BYTES, [b"\xff\0", b""])),
        Tensor("c", DATATYPES["FP64"], np.arange(3, dtype="<f8")),
    ]
    result = _result(True, *tensors)
    for tensor in tensors:
        assert result.as_numpy(tensor.name).tolist() == tensor.array.tolist()
    assert result.as_numpy("a").shape == (0, 4)
    assert result.as_numpy("none") is None
