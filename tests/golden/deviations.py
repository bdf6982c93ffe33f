"""Where the server answers otherwise than the recorded Triton, on purpose, and why."""

from __future__ import annotations

from typing import Any

from golden.twins import ELEMENTS

Case = dict[str, Any]

JSON_FAULT = "a body that is wrong is the client's fault: 400, not 500"
HEALTH = "the kserve SDK reads the body of the health paths; Triton's is empty"
HALF_IN_JSON = "FP16 and BF16 are taken and given as JSON numbers; Triton refuses"
NONFINITE = "a reply is always valid JSON: NaN and infinities are null, and a header names the outputs"
OUT_OF_RANGE = "a number that the datatype cannot hold is refused, not cut or made infinite"
ABSURD_SHAPE = "the recorded server dies or wraps around; a shape without the data to fill it is refused"
EMPTY_BODY = "an empty body is no tensor of no bytes"
BROKEN_STREAM = "a broken stream is refused; Triton goes on with what it got"
SMALL_REPLY = "compressing a reply that fits one packet costs time and saves nothing"

# Models of the repository, for the index; what else was recorded has no ONNX twin.
HOSTED = (
    "add_sub", "auto_cfg", "bad_config", "bad_init", "classify", "classify_nobatch", "fail_model", "identity_2d",
    "identity_bytes", "identity_fp32", "identity_multi", "latest_only", "multi_version", "optional_in", "params_echo",
    "reshape_io", *(f"id_{datatype.lower()}" for datatype in ELEMENTS),
)  # fmt: skip


def _json(document: Any) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    return {"status": 200, "compare": "exact", "response_json": document, "response_headers": headers}


def _data(model: str, datatype: str, values: list[Any]) -> dict[str, Any]:
    output = {"name": "OUTPUT0", "datatype": datatype, "shape": [len(values)], "data": values}
    return _json({"model_name": model, "model_version": "1", "outputs": [output]})


def _refused(status: int = 400) -> dict[str, Any]:
    return {"status": status, "compare": "error", "response_headers": {}}


def _status(status: int) -> dict[str, Any]:
    return {"status": status, "compare": "status", "response_headers": {}}


# case: (reason, what is expected instead)
DEVIATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "health.live": (HEALTH, _json({"live": True})),
    "health.live_query": (HEALTH, _json({"live": True})),
    "health.ready": (HEALTH, _json({"ready": True})),
    "health.live_head": ("load balancers probe with HEAD", _status(200)),
    "health.unknown_method": ("the HTTP parser knows the methods and refuses others as malformed", _refused()),
    "model_ready.ok": (HEALTH, _json({"name": "identity_fp32", "ready": True})),
    "model_ready.version": (HEALTH, _json({"name": "identity_fp32", "ready": True})),
    "json.bf16": (HALF_IN_JSON, _data("id_bf16", "BF16", [1.0])),
    "binary.fp16_json_out": (HALF_IN_JSON, _data("id_fp16", "FP16", [1.0, 2.0])),
    "binary.bf16_json_out": (HALF_IN_JSON, _data("id_bf16", "BF16", [1.0, 2.0])),
    "coerce.fp32_null": ("null in float data is NaN, as the kserve SDK sends it", _data("id_fp32", "FP32", [None])),
    "nan.json_in": (NONFINITE, _data("id_fp32", "FP32", [None, None, None])),
    "nan.binary_in_json_out": (NONFINITE, _data("id_fp32", "FP32", [None, None, None, -0.0])),
    "range.uint8_300": (OUT_OF_RANGE, _refused()),
    "range.uint32_big": (OUT_OF_RANGE, _refused()),
    "range.int8_200": (OUT_OF_RANGE, _refused()),
    "range.int32_big": (OUT_OF_RANGE, _refused()),
    "range.fp32_overflow": (OUT_OF_RANGE, _refused()),
    "shape.zero_with_data": ("data that no element of the shape can take is refused", _refused()),
    "crash.shape_wrap_json": (ABSURD_SHAPE, _refused()),
    "crash.shape_huge_json": (ABSURD_SHAPE, _refused()),
    "crash.class_bytes": ("strings have no order to classify by; the recorded server dies", _refused()),
    "malformed.empty": (EMPTY_BODY, _refused()),
    "header.no_content_length": (EMPTY_BODY, _refused()),
    "header.content_length_short": (JSON_FAULT, _refused()),
    "compress.error_reply": (JSON_FAULT, _refused()),
    "compress.not_gzip": (BROKEN_STREAM, _refused()),
    "compress.raw_deflate": (BROKEN_STREAM, _refused()),
    "compress.truncated": (BROKEN_STREAM, _refused()),
    "outputs.duplicate": ("an output asked for twice is a mistake, as in newer Triton releases", _refused()),
    "optional.required_absent": ("a required input that is missing is found before the model runs", _refused()),
    "route.unknown_01": ("the path of the published OpenAPI file, with a slash, works too", _status(200)),
    "route.unknown_04": ("GET /v2/models lists the models, as KServe's servers do", _status(200)),
    "meta.model.version_zeros": ("a version is compared with the known ones as it is written", _refused(404)),
    "meta.model.url_escaped": ("escapes in the path are decoded", _status(200)),
    **{
        f"compress.{name}": (SMALL_REPLY, {"response_headers": {}})
        for name in ("gzip_out", "deflate_out", "gzip_binary_both", "accept_list", "accept_list_rev", "accept_br_gzip")
    },
}


def as_expected_here(case: Case) -> Case:
    """The case with what this server should answer."""
    expected = dict(case)
    if 500 in case.get("accept_status", ()):
        expected["accept_status"] = [400]
    if case["compare"] == "exact" and "/params_echo/" in case["path"]:
        expected["compare"] = "status"  # the recorded model reports its parameters, which no ONNX model can
    document = case.get("response_json")
    if case["compare"] == "index":
        expected["response_json"] = [entry for entry in document or () if entry["name"] in HOSTED]
    elif isinstance(document, dict) and "platform" in document:
        expected["response_json"] = {**document, "platform": "onnxruntime_onnx"}
    if case["id"] in DEVIATIONS:
        expected.pop("accept_status", None)
        expected.pop("response_text", None)
        expected.update(DEVIATIONS[case["id"]][1])
    return expected
