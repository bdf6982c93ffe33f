"""Runs inside the MLServer environment: a runtime that hands the first input to onnxruntime."""

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class OnnxRuntime(MLModel):
    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        uri = self.settings.parameters.uri
        self.session = onnxruntime.InferenceSession(uri, options, providers=["CPUExecutionProvider"])
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        rows = NumpyCodec.decode_input(payload.inputs[0])
        result = self.session.run(None, {"x": rows.astype("float32", copy=False)})[0]
        outputs = [NumpyCodec.encode_output("y", result)]
        return InferenceResponse(model_name=self.name, model_version=self.version, outputs=outputs)
