"""Runs inside Triton's python backend: joins the requests that the dynamic batcher chose, runs once, and splits."""

import os

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        file = os.path.join(args["model_repository"], args["model_version"], "model.onnx")
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        result = self.session.run(None, {"x": inputs[0] if len(inputs) == 1 else np.concatenate(inputs)})[0]
        responses = []
        start = 0
        for rows in inputs:
            stop = start + len(rows)
            tensor = pb_utils.Tensor("y", result[start:stop])
            responses.append(pb_utils.InferenceResponse(output_tensors=[tensor]))
            start = stop
        return responses
