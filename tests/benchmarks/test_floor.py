from pathlib import Path

import pytest

from benchmarks.models import MODELS
from benchmarks.rounds import Plan, check_answer, started
from benchmarks.servers import SERVERS
from benchmarks.workloads import WORKLOADS, encode_request, sample_rows


@pytest.mark.parametrize("server", ["floor", "floor-orjson"])
def test_the_floor_gives_the_answers_of_onnxruntime_in_both_encodings(server: str, tmp_path: Path) -> None:
    model = MODELS["image"]
    as_json, binary = (WORKLOADS[f"image-{encoding}"] for encoding in ("json", "binary"))
    body = encode_request(model, sample_rows(model), "json")
    # Entering waits for the first right answer, and raises if none comes.
    with started(SERVERS[server], as_json, Plan(pinned=False), body, tmp_path) as running:
        check_answer(running.url, encode_request(model, sample_rows(model), "binary"), binary)
