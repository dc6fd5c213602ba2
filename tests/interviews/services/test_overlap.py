"""Which questions of one interview are at a real service at the same time."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

from headrace import Model, QuestionFreeText, Survey

PATIENCE_S = 20.0


class MeetingService:
    """A chat service where calls named in `meet` are answered only once all of them are there. `before` says, for each
    call, which other calls had been answered when it came.
    """

    def __init__(self, meet: set[str]) -> None:
        self._meet = meet
        self._barrier = threading.Barrier(len(meet) or 1)
        self._answered: list[str] = []
        self.before: dict[str, set[str]] = {}
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                reply = service.reply(body["messages"][-1]["content"].split()[0])
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    def reply(self, name: str) -> bytes:
        self.before[name] = set(self._answered)
        if name in self._meet:
            self._barrier.wait(PATIENCE_S)
        self._answered.append(name)
        message = {"role": "assistant", "content": "Yes"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        return json.dumps({"id": "x", "object": "chat.completion", "choices": choices, "usage": usage}).encode()

    def model(self) -> Model:
        url = f"http://127.0.0.1:{self._server.server_port}/v1"
        return Model("m", base_url=url, service_name="openai_compatible")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture(params=[0, 2], ids=["inline", "workers"])
def settings(request: pytest.FixtureRequest) -> dict[str, int]:
    return {"workers": request.param} if request.param else {}


@pytest.fixture
def service(request: pytest.FixtureRequest) -> Iterator[MeetingService]:
    with MeetingService(set(request.param)) as service:
        yield service


def survey_of(*names: str, **texts: str) -> Survey:
    asked = [QuestionFreeText(question_name=n, question_text=f"{n} {texts.get(n, 'Well?')}") for n in names]
    return Survey(asked)


@pytest.mark.parametrize("service", ["abe"], indirect=True)
def test_questions_without_a_dependency_are_at_the_service_together_and_others_are_not(
    service: MeetingService, settings: dict[str, int], tmp_path: Path
):
    survey = survey_of(*"abcde", c="You said {{ a.answer }}?")
    survey.add_skip_rule("d", "b == 'No'").add_rule("b", "b == 'No'", "d")
    results = survey.by(service.model()).run(tmp_path / "a.run", **settings)
    assert results[0].answer == dict.fromkeys("abcde", "Yes")
    assert {"a", "b"} <= service.before["c"]  # its text names a, and the rule after b could jump over it
    assert "b" in service.before["d"]
    assert service.before["a"] == service.before["b"] == service.before["e"] == set()


@pytest.mark.parametrize("service", [""], indirect=True)
def test_a_question_that_a_stop_rule_may_leave_out_waits_for_it(
    service: MeetingService, settings: dict[str, int], tmp_path: Path
):
    survey = survey_of(*"abc").add_stop_rule("a", "a == 'Yes'")
    results = survey.by(service.model()).run(tmp_path / "a.run", **settings)
    assert results[0].answer == {"a": "Yes", "b": None, "c": None}
    assert (results[0].skipped, results[0].failures, set(service.before)) == (["b", "c"], [], {"a"})
