"""ONNX models on ONNX Runtime; only this package imports onnxruntime. Runs on: worker thread (load: loader thread)."""

from .model import OnnxRuntimeModel

BACKEND = OnnxRuntimeModel

__all__ = ["BACKEND", "OnnxRuntimeModel"]
