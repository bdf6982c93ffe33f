"""Runs inside the LitServe environment: MODEL.onnx NAME PORT MAX_BATCH_SIZE."""

import sys

import litserve
import numpy as np
import onnxruntime

file, name, port, max_batch_size = sys.argv[1:]


class OnnxAPI(litserve.LitAPI):
    def setup(self, device: str) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def decode_request(self, request: dict) -> np.ndarray:
        tensor = request["inputs"][0]
        return np.asarray(tensor["data"], np.float32).reshape(tensor["shape"])

    def batch(self, inputs: list) -> np.ndarray:
        return np.concatenate(inputs)

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.session.run(None, {"x": x})[0]

    def unbatch(self, output: np.ndarray) -> list:
        return [output[row : row + 1] for row in range(len(output))]

    def encode_response(self, output: np.ndarray) -> dict:
        tensor = {"name": "y", "datatype": "FP32", "shape": list(output.shape), "data": output.ravel().tolist()}
        return {"model_name": name, "outputs": [tensor]}


if __name__ == "__main__":
    api = OnnxAPI(
        max_batch_size=int(max_batch_size),
        batch_timeout=0.005 if int(max_batch_size) > 1 else 0.0,
        api_path=f"/v2/models/{name}/infer",
    )
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1)
    server.run(host="127.0.0.1", port=int(port), generate_client_file=False, log_level="warning", access_log=False)
