import json
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import Agent, AgentList, Job, Model, QuestionFreeText, QuestionNumerical, Survey
from headrace.errors import MissingExtra, OptionError, ProviderRefused
from headrace.models.provider import Request
from headrace.telemetry import otel_export
from headrace.telemetry.conventions import CAPTURE_VARIABLE, CONVENTION
from tests.telemetry.collector import Collector

DURATION, TOKENS = "gen_ai.client.operation.duration", "gen_ai.client.token.usage"


def job(agents: int = 3, answer: object = 7):
    survey = Survey(
        [
            QuestionFreeText(question_name="mood", question_text="How do you feel, secret-prompt?"),
            QuestionNumerical(question_name="rating", question_text="You said {{ mood.answer }}. Rate it."),
        ]
    )
    model = Model("test", canned_response={"mood": "secret-answer", "rating": answer}, temperature=0.5)
    return survey.by(AgentList(Agent(name=f"p{i}", traits={"age": i}) for i in range(agents))).by(model)


def test_an_interview_is_a_span_and_each_question_a_chat_span_in_it(tmp_path: Path, collector: Collector):
    results = job().run(tmp_path / "a.run", telemetry=True)
    interviews, chats = collector.named("interview"), collector.named("chat test")
    assert (len(interviews), len(chats)) == (3, 6) == (len(results), 6)
    assert {span.attributes["headrace.interview.ordinal"] for span in interviews} == {0, 1, 2}
    parents = {span.id: span for span in interviews}
    assert all(parents[chat.parent].trace == chat.trace for chat in chats)
    assert len({span.trace for span in interviews}) == 3
    chat = chats[0]
    assert chat.attributes | {"headrace.question.name": ""} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "test",
        "gen_ai.request.model": "test",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.usage.input_tokens": chat.attributes["gen_ai.usage.input_tokens"],
        "gen_ai.usage.output_tokens": chat.attributes["gen_ai.usage.output_tokens"],
        "headrace.question.name": "",
        "headrace.calls": 1,
    }
    assert collector.resources[0]["service.name"] == "headrace"
    assert collector.schemas == {f"https://opentelemetry.io/schemas/{CONVENTION}"}


def test_the_two_metrics_count_calls_and_tokens(tmp_path: Path, collector: Collector):
    results = job().run(tmp_path / "a.run", telemetry=True)
    stats = results.stats()
    assert collector.total(DURATION, "gen_ai.request.model", "test")[0] == 6
    assert collector.total(TOKENS, "gen_ai.token.type", "input") == (6, stats.input_tokens)
    assert collector.total(TOKENS, "gen_ai.token.type", "output") == (6, stats.output_tokens)
    assert collector.bounds[DURATION][:3] == [0.01, 0.02, 0.04]
    assert collector.bounds[TOKENS][-1] == 67108864


def test_prompts_and_answers_are_exported_only_where_the_convention_s_variable_says_so(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
):
    job().run(tmp_path / "a.run", telemetry=True)
    assert collector.spans
    assert not [body for body in collector.bodies if b"secret" in body]
    monkeypatch.setenv(CAPTURE_VARIABLE, "SPAN_ONLY")
    job().run(tmp_path / "b.run", telemetry=True)
    asked = [span for span in collector.named("chat") if "gen_ai.input.messages" in span.attributes]
    assert len(asked) == 6
    moods = [span.attributes for span in asked if span.attributes["headrace.question.name"] == "mood"]
    (message,) = json.loads(moods[0]["gen_ai.input.messages"])
    assert message["role"] == "user"
    assert "secret-prompt" in message["parts"][0]["content"]
    (message,) = json.loads(moods[0]["gen_ai.output.messages"])
    assert (message["role"], message["parts"][0]["content"]) == ("assistant", "secret-answer")
    assert "age" in json.loads(moods[0]["gen_ai.system_instructions"])[0]["content"]


def test_a_failed_question_is_an_error_by_its_cause(tmp_path: Path, collector: Collector):
    job(agents=1, answer="no number").run(tmp_path / "a.run", telemetry=True)
    failed = [span for span in collector.named("chat") if span.is_error]
    assert [(span.attributes["error.type"], span.attributes["headrace.calls"]) for span in failed] == [("invalid", 3)]
    assert [span.is_error for span in collector.named("interview")] == [True]
    assert collector.total(DURATION, "error.type", "invalid")[0] == 1


def test_workers_export_the_same_through_the_controller(tmp_path: Path, collector: Collector):
    job(agents=8).run(tmp_path / "a.run", telemetry=True, workers=2)
    assert (len(collector.named("interview")), len(collector.named("chat"))) == (8, 16)
    assert collector.total(DURATION)[0] == 16


@pytest.mark.parametrize("keep", ["answers", "nothing"])
def test_what_a_file_does_not_keep_is_exported_all_the_same(tmp_path: Path, collector: Collector, keep: str):
    totals = {"aggregate": {"n": "count()"}} if keep == "nothing" else {}
    job().run(tmp_path / "a.run", telemetry=True, keep=keep, **totals)
    assert (len(collector.named("interview")), len(collector.named("chat"))) == (3, 6)


def test_only_new_interviews_are_exported_when_a_run_goes_on(tmp_path: Path, collector: Collector):
    job().run(tmp_path / "a.run", telemetry=True, limit=1)
    job().run(tmp_path / "a.run", telemetry=True)
    ordinals = [span.attributes["headrace.interview.ordinal"] for span in collector.named("interview")]
    assert sorted(ordinals) == [0, 1, 2]


def test_answers_that_an_earlier_run_gave_are_not_exported_again(tmp_path: Path, collector: Collector):
    is_away = [True]

    async def model(request: Request) -> str:
        if request.question_name == "rating" and is_away[0]:
            raise ProviderRefused("not now")
        return "7"

    asked = Job(job().survey).by(Model.from_function(model))
    asked.run(tmp_path / "a.run", telemetry=True)
    is_away[0] = False
    asked.run(tmp_path / "a.run", telemetry=True)
    chats = [(span.attributes["headrace.question.name"], span.is_error) for span in collector.named("chat")]
    assert sorted(chats) == [("mood", False), ("rating", False), ("rating", True)]


def test_the_command_exports_with_an_option(tmp_path: Path, collector: Collector):
    (tmp_path / "rows.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')
    command = [sys.executable, "-m", "headrace", "map", "Label: {{ text }}", "--data", "rows.jsonl", "--model", "test"]
    subprocess.run([*command, "-o", "a.run", "--telemetry"], cwd=tmp_path, capture_output=True, check=True)
    assert (len(collector.named("interview")), len(collector.named("chat test"))) == (2, 2)


def test_without_the_extra_a_run_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(otel_export, "_NEEDED", ("opentelemetry_that_is_not_there.sdk",))
    with pytest.raises(MissingExtra, match="opentelemetry-exporter-otlp-proto-http"):
        job().run(tmp_path / "a.run", telemetry=True)
    assert not (tmp_path / "a.run").exists()
    with pytest.raises(OptionError, match="telemetry"):
        job().run(tmp_path / "a.run", telemetry="yes")


def test_nothing_of_opentelemetry_is_loaded_unless_it_is_asked_for(tmp_path: Path):
    program = """
import sys
from headrace import Model, QuestionFreeText, Survey
job = Survey([QuestionFreeText(question_name="q", question_text="Well?")]).by(Model("test", canned_response="x"))
job.run(sys.argv[1])
print(sorted(name for name in sys.modules if name.startswith(("opentelemetry", "headrace.telemetry"))))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a.run")],
        capture_output=True,
        text=True,
        check=True,
        env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "HEADRACE_HOME": str(tmp_path)},
    )
    assert (ran.stdout.strip(), ran.stderr) == ("[]", "")
