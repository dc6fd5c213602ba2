"""A service whose reply is small enough in bytes, and would be large as Python's values."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace import Model, QuestionFreeText, Results, Survey
from headrace.models.http_client.decoding import BadReply, decoded
from tests.models.behaviours import Call, Connection, completion, http
from tests.models.server import HostileServer

BOMB = "[" + ",".join(["[]"] * 2_500_000) + "]"
MOST_BYTES = 250_000_000  # 172 MB; 678 before there was a bound on values

PROGRAM = """
import sys
from pathlib import Path
from headrace import Model, QuestionFreeText, QuestionList, ScenarioList, Survey
asked = Survey([QuestionList(question_name="places", question_text="Which?"),
                QuestionFreeText(question_name="why", question_text="Why, {{ scenario.n }}?")])
model = Model("m", service_name="openai_compatible", base_url=sys.argv[1])
asked.by(ScenarioList.from_list("n", [1]), model).run("a.run", concurrency=1)
# Not ru_maxrss: that is never less than what the process had that started this one.
(peak,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
print(int(peak.split()[1]) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_answer_of_millions_of_values_is_refused_before_they_are_made(tmp_path: Path):
    with HostileServer() as server:
        server.behave("ok", answer='{"answer":' + BOMB + "}")
        command = [sys.executable, "-c", PROGRAM, server.url]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    with Results.open(tmp_path / "a.run") as results:
        (answers,) = results.select("answer.*").to_dicts()
    assert answers["places"] is None
    assert answers["why"].startswith('{"answer":[[],[]')  # a text was asked for, whatever it holds
    assert int(ran.stdout) < MOST_BYTES


def alternatives(tokens: int) -> list[dict[str, Any]]:
    """What a service sends for each token where `logprobs=20` asks for it."""
    others = [{"token": f"t{number}", "logprob": -1.25, "bytes": [116, 48 + number % 10]} for number in range(20)]
    return [{"token": " x", "logprob": -0.5, "bytes": [32, 120], "top_logprobs": others}] * tokens


def test_values_that_nothing_reads_cost_no_answer(tmp_path: Path):
    async def with_alternatives(call: Call, out: Connection) -> None:
        whole = msgspec.json.decode(completion(call, "It rains."))
        whole["choices"][0]["logprobs"] = {"content": alternatives(6_000)}
        out.send(http(200, msgspec.json.encode(whole)))

    asked = QuestionFreeText(question_name="why", question_text="Why?")
    with HostileServer() as server:
        server.behave([with_alternatives])
        model = Model("m", service_name="openai_compatible", base_url=server.url, logprobs=20)
        with Survey([asked]).by(model).run(tmp_path / "a.run", progress_bar=False) as results:
            (result,) = results
            assert results.stats().calls == server.calls == 1
            names = ("generated_tokens.why_generated_tokens", "raw_model_response.why_raw_model_response")
            ((generated, raw),) = (row.values() for row in results.select(*names).to_dicts())
    assert result.answer == {"why": "It rains."}
    assert generated == "It rains."
    assert isinstance(raw, str)  # as values it would take more than a reply may
    assert len(json.loads(raw)["choices"][0]["logprobs"]["content"]) == 6_000


class _Shape(msgspec.Struct):
    content: list[object] | None = None


def test_a_reply_of_millions_of_values_is_a_bad_reply():
    with pytest.raises(BadReply, match="its values would take more than 48 MB"):
        decoded(msgspec.json.Decoder(_Shape), b'{"content":' + BOMB.encode() + b"}")
