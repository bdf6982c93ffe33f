"""Runs inside the FastAPI environment: MODEL.onnx NAME PORT."""

import sys

import numpy as np
import onnxruntime
import orjson
import uvicorn
from fastapi import FastAPI, Request, Response

file, name, port = sys.argv[1:]
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
app = FastAPI()


@app.post("/v2/models/{model}/infer")
async def infer(model: str, request: Request) -> Response:
    tensor = orjson.loads(await request.body())["inputs"][0]
    rows = np.asarray(tensor["data"], np.float32).reshape(tensor["shape"])
    result = session.run(None, {"x": rows})[0]
    output = {"name": "y", "datatype": "FP32", "shape": result.shape, "data": result.ravel()}
    content = orjson.dumps({"model_name": name, "outputs": [output]}, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(content, media_type="application/json")


uvicorn.run(app, port=int(port), access_log=False, log_level="warning")
