"""KernelPort: a multi-framework inference server speaking the Open Inference Protocol. Runs on: anywhere."""

__version__ = "0.1.0"
