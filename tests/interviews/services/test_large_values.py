"""A service whose reply is small enough in bytes, and would be large as Python's values."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from headrace import Results
from headrace.models.http_client.decoding import BadReply, decoded
from headrace.models.http_client.failures import said_by
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


class _Shape(msgspec.Struct):
    content: list[object] | None = None


def test_a_reply_of_millions_of_values_is_a_bad_reply():
    with pytest.raises(BadReply, match="its values would take more than 48 MB"):
        decoded(msgspec.json.Decoder(_Shape), b'{"content":' + BOMB.encode() + b"}")


def test_an_error_of_millions_of_values_is_read_as_a_text():
    said = said_by(b'{"error":' + BOMB.encode() + b"}")
    assert said.words.startswith('{"error":[[],[]')
