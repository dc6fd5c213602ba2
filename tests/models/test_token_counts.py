"""Services that tell no usage: their tokens are reckoned, so that limits hold."""

import json
from typing import Any

import pytest

from headrace import Model, QuestionFreeText, ScenarioList, Survey
from headrace.errors import BudgetSpent
from tests.models.behaviours import http
from tests.models.raw_server import RawCall, RawServer

WORDS = "word " * 80  # 400 letters: 100 tokens
UNUSABLE: dict[str, dict[str, Any]] = {
    "left-out": {},
    "null": {"usage": None},
    "negative": {"usage": {"prompt_tokens": -5, "completion_tokens": -5}},
    "text": {"usage": "many"},
    "too-large": {"usage": {"prompt_tokens": 2**70, "completion_tokens": 1e308}},
}


def answering(more: dict[str, Any]) -> RawServer:
    said = {"choices": [{"message": {"content": WORDS}, "finish_reason": "stop"}], **more}
    body = json.dumps(said).encode()

    async def answer(call: RawCall) -> None:
        call.write(http(200, body))

    return RawServer(answer)


def job(server: RawServer, **parameters: Any):
    survey = Survey([QuestionFreeText(question_name="q", question_text="{{ scenario.n }} " + WORDS)])
    model = Model("m", service_name="openai_compatible", base_url=server.url, **parameters)
    return survey.by(ScenarioList.from_list("n", range(300))).by(model)


@pytest.mark.parametrize("more", UNUSABLE.values(), ids=UNUSABLE)
def test_limits_hold_where_a_service_tells_no_usage(more, tmp_path):
    with answering(more) as server:
        with pytest.raises(BudgetSpent):
            job(server).run(tmp_path / "tokens.run", cache=False, max_tokens_total=2_000)
        assert 1 < server.calls <= 10  # 200 tokens each, and the instructions
        asked, priced = server.calls, job(server, price={"input": 100, "output": 100})
        with pytest.raises(BudgetSpent):
            priced.run(tmp_path / "cost.run", cache=False, max_cost=0.2)
        assert 1 < server.calls - asked <= 10


def test_what_a_service_tells_is_what_counts(tmp_path):
    with answering({"usage": {"prompt_tokens": 7, "completion_tokens": 3}}) as server:
        stats = job(server).run(tmp_path / "a.run", cache=False, limit=5).stats()
    assert (stats.input_tokens, stats.output_tokens) == (35, 15)
