"""Runs inside the KServe environment; takes the SDK's own flags, and the model from BENCH_MODEL and BENCH_NAME."""

import logging
import os

import onnxruntime
from kserve import InferOutput, InferRequest, InferResponse, Model, ModelServer


class OnnxModel(Model):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        file = os.environ["BENCH_MODEL"]
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self.ready = True

    async def predict(self, payload: InferRequest, headers=None, response_headers=None) -> InferResponse:
        result = self.session.run(None, {"x": payload.inputs[0].as_numpy()})[0]
        output = InferOutput(name="y", shape=list(result.shape), datatype="FP32")
        output.set_data_from_numpy(result, binary_data=payload.use_binary_outputs)
        return InferResponse(
            response_id=payload.id or "0",
            model_name=self.name,
            infer_outputs=[output],
            use_binary_outputs=payload.use_binary_outputs,
            requested_outputs=payload.request_outputs,
        )


if __name__ == "__main__":
    server = ModelServer()
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("kserve.trace").setLevel(logging.WARNING)
    server.start([OnnxModel(os.environ["BENCH_NAME"])])
