import functools
import subprocess
import sys

import pytest

from headrace import Job, Model, QuestionMultipleChoice, Survey
from headrace.errors import ListError, ModelUnusable, ProviderRefused, ProviderTimeout, ProviderUnavailable
from headrace.models.provider import Finish, Reply, Request
from headrace.models.services import provider_for
from headrace.survey.replies import read_reply
from tests.models.asking import a_request, ask

MOOD = QuestionMultipleChoice(question_name="mood", question_text="Well?", question_options=["Good", "Bad"])


async def good(request: Request) -> str:
    return "Good" if request.question_name == "mood" else "Bad"


class Answering:
    async def __call__(self, request: Request) -> str:
        return "Good"


def returning(value: object) -> Model:
    async def answer(request: Request) -> object:
        return value

    return Model.from_function(answer)


def raising(error: Exception) -> Model:
    async def answer(request: Request) -> str:
        raise error

    return Model.from_function(answer)


def test_an_async_function_is_a_model(tmp_path):
    results = Survey([MOOD]).by(Model.from_function(good)).run(tmp_path / "a.run")
    assert results[0].answer == {"mood": "Good"}


@pytest.mark.parametrize(
    ("value", "given"),
    [("Good", "Good"), ({"answer": 3}, 3), (7, 7), (True, True), ([1, 2], [1, 2]), ({"a": 1}, '{"a":1}')],
)
def test_what_a_function_returns_is_its_answer(value, given):
    (reply,) = ask(returning(value))
    assert read_reply(reply.text)[0] == given


def test_a_function_may_give_a_whole_reply():
    whole = Reply("Goo", b"raw", 5, 6, finish=Finish.LENGTH)
    assert ask(returning(whole)) == [whole]


def test_nothing_is_an_empty_reply_and_surrogates_are_replaced():
    (nothing,), (odd,) = ask(returning(None)), ask(returning("a\ud800b"))
    assert nothing.text == ""
    assert (odd.text, odd.repaired) == ("a\ufffdb", True)


def test_what_is_no_json_is_refused():
    (error,) = ask(returning(object()))
    assert type(error) is ProviderRefused


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ValueError("no"), ProviderUnavailable),
        (TimeoutError(), ProviderTimeout),
        (ModelUnusable("gone"), ModelUnusable),
    ],
)
def test_what_a_function_raises_is_an_error_of_a_provider(raised, kind):
    (error,) = ask(raising(raised))
    assert type(error) is kind


def test_a_plain_function_is_refused_with_the_way_out():
    with pytest.raises(ListError, match="no async function") as caught:
        provider_for(Model.from_function(lambda request: "Good"))
    assert "to_thread" in caught.value.fix
    with pytest.raises(ListError, match="is not a function"):
        Model.from_function("good")


@pytest.mark.parametrize("function", [good, Answering(), functools.partial(good)])
def test_whatever_is_async_is_a_function(function):
    (reply,) = ask(Model.from_function(function), Request("mood", "", "", {}, {}, {}, 0, 1))
    assert reply.text == "Good"


def test_a_function_s_name_is_the_model_s_unless_one_is_given():
    assert Model.from_function(good).name == "good"
    assert Model.from_function(functools.partial(good)).name == "good"
    assert Model.from_function(Answering()).name == "Answering"
    assert Model.from_function(good, name="mine").name == "mine"
    assert "good" in repr(Model.from_function(good))


def test_a_run_file_alone_cannot_bring_the_function_back(tmp_path):
    Survey([MOOD]).by(Model.from_function(good)).run(tmp_path / "a.run")
    job = Job.open(tmp_path / "a.run")
    with pytest.raises(ListError, match="which a file cannot carry"):
        job.run(tmp_path / "a.run")


def test_a_run_with_a_function_goes_on_in_the_same_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
from headrace import Agent, Model, QuestionFreeText, Survey
async def answer(request):
    print("asked")
    return request.agent["n"]
survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
results = survey.by([Agent(traits={"n": n}) for n in range(3)]).by(Model.from_function(answer)).run("a.run")
print(*[result.answer["q"] for result in results])
""")
    runs = [
        subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs == ["asked\nasked\nasked\n0 1 2\n", "0 1 2\n"]


def test_a_request_tells_the_function_everything():
    seen: list[Request] = []

    async def answer(request: Request) -> str:
        seen.append(request)
        return "x"

    ask(Model.from_function(answer), a_request("Well?"))
    assert (seen[0].user_prompt, seen[0].system_prompt, seen[0].question_name) == ("Well?", "You are 30.", "mood")
