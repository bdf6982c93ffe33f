"""Served throughput and latency of KernelPort and its peers, measured the same way on one machine."""
