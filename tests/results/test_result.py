"""One interview: its parts, its values, and its detail."""

import math
import threading
from pathlib import Path

import pytest

from headrace.errors import InvalidInput, RunFileDamaged
from headrace.results.result import Result, Tokens
from headrace.results.results import Results
from headrace.store.connections import open_writer
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.rows import row_batch
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.scenario import Scenario
from headrace.survey.values import encode_fields
from tests.results import files

ODD_VALUES = [
    float("inf"), 2**70, -(2**70), 2**63 - 1, "07", "", "a\0b", "😀 naïve", ["x", [1, None]], {"$int": "no tag"},
    {"a": {"b": [2**80]}}, None, 0, 0.5, -0.0, True, "{\"a\": 1}",
]  # fmt: skip


def test_a_result_knows_its_parts_by_attribute_and_by_name(tmp_path: Path) -> None:
    path = files.city(tmp_path / "city.run")
    with Results.open(path) as results:
        result = results[5]
        assert result.answer["mood"] == result["answer"]["mood"] == "Bad"
        assert result.agent == result["agent"] == {"agent_name": "p2", "age": 22}
        assert result.scenario == result["scenario"] == {"city": "Lima"}
        assert result.model == result["model"] == Model("test", canned_response="x")
        assert result["iteration"] == result.iteration == 0
        assert (result.ordinal, result.status) == (5, "done")
        assert repr(result) == "Result(5, done, answer={'mood': 'Bad', 'rating': 5})"
        with pytest.raises(InvalidInput, match="Did you mean 'answer'"):
            result["answers"]


def test_the_detail_tells_what_was_asked_and_what_came_back(tmp_path: Path) -> None:
    path = files.city(tmp_path / "city.run")
    with Results.open(path) as results:
        result = results[4]
        assert result.prompts == {"mood": "Please answer 0.", "rating": "Please answer 1."}
        assert result.system_prompt == "You are number 4."
        assert result.raw_responses["mood"] == "raw 'Good'"
        assert result.comments == {"mood": "since it rains"}
        assert result.tokens["rating"] == Tokens(input=10, output=3)
        assert (result.times.started_at, result.times.took_ms["mood"]) == (1000.5, 25)
        assert result.failures == result.skipped == []


def test_a_failed_result_tells_which_question_and_why(tmp_path: Path) -> None:
    with Results.open(files.city(tmp_path / "city.run")) as results:
        result = results[3]
        assert result.status == "failed"
        assert result.answer == {"mood": None, "rating": 9}
        assert result.failures == [(3, "mood", "invalid answer", "question 0 < 3")]


def test_a_skipped_question_is_named_and_was_not_asked(tmp_path: Path) -> None:
    path = files.write(tmp_path / "s.run", files.job(files.survey("a", "b")), lambda _: ["x", files.SKIPPED])
    with Results.open(path) as results:
        assert results[0].skipped == ["b"]
        assert list(results[0].prompts) == ["a"]
        assert results[0].answer["b"] is None


def test_a_fresh_result_equals_the_stored_one(tmp_path: Path) -> None:
    of = files.job(files.survey("a", "b"), [Agent({"x": math.inf}, name="n")], [Scenario(tags=["t"])])
    path = tmp_path / "fresh.run"
    with files.opened(path, of) as file:
        batch = row_batch([files.row(file, of, 0, [["list"], files.MISSING])])
        agent, scenario = encode_fields({"agent_name": "n", "x": math.inf})[0], encode_fields({"tags": ["t"]})[0]
        fresh = Result.from_row(next(iter(batch)), agent, scenario, RunHeader.load(file.connection, file.path))
        file.journal.commit([batch], [])
    with Results.open(path) as results:
        for part in ("ordinal", "iteration", "status", "answer", "agent", "scenario", "model", "prompts", "tokens"):
            assert fresh[part] == results[0][part], part
        assert fresh.failures == results[0].failures != []
        assert fresh.system_prompt == results[0].system_prompt


@pytest.mark.parametrize("value", [*ODD_VALUES, float("nan")], ids=repr)
def test_an_answer_comes_back_as_it_was(tmp_path: Path, value: object) -> None:
    path = files.write(tmp_path / "v.run", files.job(files.survey("q")), lambda _: [value])
    with Results.open(path) as results:
        back = results[0].answer["q"]
        assert type(back) is type(value)
        assert repr(back) == repr(value)
        assert repr(results.to_dicts(remove_prefix=False)[0]["answer.q"]) == repr(value)


@pytest.mark.parametrize("value", [*ODD_VALUES, float("nan")], ids=repr)
def test_a_field_comes_back_as_it_was(tmp_path: Path, value: object) -> None:
    of = files.job(files.survey("q"), [Agent({"t": value})], [Scenario(f=value)])
    with Results.open(files.write(tmp_path / "v.run", of, lambda _: ["x"])) as results:
        row = results.select("agent.t", "scenario.f").to_dicts(remove_prefix=False)[0]
        assert repr(results[0].agent["t"]) == repr(results[0].scenario["f"]) == repr(value)
        assert repr(row) == repr({"agent.t": value, "scenario.f": value})


def test_answers_of_a_question_of_booleans_are_booleans(tmp_path: Path) -> None:
    agents = [Agent({"n": n}) for n in range(3)]
    path = files.write(
        tmp_path / "b.run",
        files.job(files.survey("is_it", bools=["is_it"]), agents),
        lambda n: [[True, False, files.MISSING][n]],
    )
    with Results.open(path) as results:
        assert [result.answer["is_it"] for result in results] == [True, False, None]
        assert [row["answer.is_it"] for row in results.to_dicts(remove_prefix=False)] == [True, False, None]


@pytest.mark.parametrize("questions", [300, 1_500])
def test_hundreds_of_questions_are_read_by_name(tmp_path: Path, questions: int) -> None:
    names = [f"q{n}" for n in range(questions)]
    agents = [Agent({"n": n}) for n in range(40)]
    last = questions - 1
    path = files.write(
        tmp_path / "w.run",
        files.job(files.survey(*names, bools=[f"q{last}"]), agents),
        lambda n: [*(f"{n}-{q}" for q in range(last)), n % 2 == 0],
    )
    with Results.open(path) as results:
        assert results[7].answer[f"q{last - 1}"] == f"7-{last - 1}"
        assert results[8].answer[f"q{last}"] is True
        assert [r.ordinal for r in results.filter(f"answer.q{last - 1} == '7-{last - 1}'")] == [7]
        assert len(results.filter(f"q{last} and q3 != '4-3'")) == 19
        ordered = results.sort_by(f"q{last}", f"q{last - 1}").select("interview.ordinal", "q5", f"q{last}")
        assert ordered.to_dicts(remove_prefix=False)[0] == {
            "interview.ordinal": 1,
            "answer.q5": "1-5",
            f"answer.q{last}": False,
        }
        assert len(results.to_pandas().columns) == len(results.columns)


def test_a_bit_flip_in_the_detail_is_found(tmp_path: Path) -> None:
    path = files.city(tmp_path / "city.run", people=1)
    connection = open_writer(path)
    detail = bytearray(connection.execute("SELECT detail FROM details WHERE ordinal = 0").get)
    detail[-6] ^= 1
    connection.execute("UPDATE details SET detail = ? WHERE ordinal = 0", (bytes(detail),))
    connection.close()
    with Results.open(path) as results:
        assert results[0].answer["mood"] == "Good"
        with pytest.raises(RunFileDamaged, match="interview 0"):
            _ = results[0].prompts


def test_results_may_be_read_from_several_threads(tmp_path: Path) -> None:
    path = files.city(tmp_path / "city.run")
    wrong: list[int] = []

    def read() -> None:
        wrong.extend(r.ordinal for r in results if r.system_prompt != f"You are number {r.ordinal}.")

    with Results.open(path) as results:
        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []
