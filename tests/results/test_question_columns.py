"""The columns that each question has beside its answer: found by EDSL's names, read only when they are named."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from headrace.errors import InvalidInput, RunFileDamaged
from headrace.results.columns.raw_responses import decoded_response, generated_text, reasoning_text
from headrace.results.results import Results
from headrace.store.connections import open_writer
from headrace.store.run_file.rows import DetailPacker
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from headrace.survey.questions.choice import QuestionMultipleChoice
from headrace.survey.scenario import Scenario
from headrace.survey.survey import Survey
from tests.results import files


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Results]:
    with Results.open(files.city_copy(tmp_path / "city.run", people=4)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("comment.mood_comment", "since it rains"),
        ("comment.rating_comment", None),
        ("prompt.mood_user_prompt", "Please answer 0."),
        ("prompt.mood_system_prompt", "You are number 0."),
        ("raw_model_response.mood_raw_model_response", "raw 'Good'"),
        ("raw_model_response.mood_input_tokens", 10),
        ("raw_model_response.mood_output_tokens", 3),
        ("raw_model_response.mood_cost", 0.0),
        ("generated_tokens.mood_generated_tokens", "raw 'Good'"),
        ("cache_used.mood_cache_used", False),
        ("validated.mood_validated", True),
        ("question_text.mood_question_text", "What of mood?"),
        ("question_options.mood_question_options", None),
        ("question_type.mood_question_type", "free_text"),
        ("reasoning_summary.mood_reasoning_summary", None),
        ("agent.agent_name", "p0"),
        ("agent.agent_index", 0),
        ("agent.agent_instruction", None),
        ("scenario.scenario_index", 0),
        ("model.model", "test"),
        ("model.model_index", 0),
        ("model.inference_service", "test"),
        ("model.canned_response", "x"),
        ("iteration.iteration", 0),
    ],
)
def test_edsls_names_are_columns_also_without_their_prefix(results: Results, column: str, value: object) -> None:
    assert results.select(column).columns == [column]
    assert results.select(column).to_dicts()[0].popitem()[1] == value
    bare = column.partition(".")[2]
    assert results.select(bare).columns == [column]


def test_columns_list_answers_and_data_and_no_parts_of_questions(results: Results) -> None:
    assert results.columns == [
        "answer.mood", "answer.rating", "agent.agent_name", "agent.age", "scenario.city", "model.model",
        "iteration.iteration", "interview.ordinal", "interview.status",
    ]  # fmt: skip
    assert results.select().columns == results.select("*").columns == results.select("*.*").columns == results.columns


def test_a_parameter_is_listed_where_models_differ_in_it(tmp_path: Path) -> None:
    models = [Model("test", canned_response="x", temperature=heat) for heat in (0.0, 1.0)]
    path = files.write(tmp_path / "m.run", files.job(files.survey("q"), models=models), lambda _: ["x"])
    with Results.open(path) as results:
        assert [name for name in results.columns if name.startswith("model.")] == ["model.model", "model.temperature"]
        assert results.select("model.*").columns == ["model.model", "model.canned_response", "model.temperature"]


def test_patterns_match_full_names_with_a_dot_and_bare_names_without(results: Results) -> None:
    assert results.select("answer.*").columns == ["answer.mood", "answer.rating"]
    assert results.select("comment.*").columns == ["comment.mood_comment", "comment.rating_comment"]
    assert results.select("*_cost").columns == ["raw_model_response.mood_cost", "raw_model_response.rating_cost"]
    assert results.select("raw_model_response.rating_*put_tokens").columns == [
        "raw_model_response.rating_input_tokens",
        "raw_model_response.rating_output_tokens",
    ]
    assert results.select("mood_*").columns[0] == "comment.mood_comment"
    assert len(results.select("mood_*").columns) == 17
    assert results.select("mood*").columns[0] == "answer.mood"


def test_filters_and_orders_use_them_and_mix_with_sql(results: Results) -> None:
    assert len(results.filter("prompt.mood_system_prompt == 'You are number 3.'")) == 1
    assert len(results.filter("validated.mood_validated and rating > 3")) == 3
    assert len(results.filter("mood_comment == 'since it rains'")) == 8
    ordered = results.sort_by("mood_system_prompt", reverse=True)
    assert [result.ordinal for result in ordered] == list(range(7, -1, -1))
    assert len(results.filter("agent_index == 2 and scenario_index == 1 and inference_service == 'test'")) == 1


def test_the_spelling_of_templates_works_in_filters(results: Results) -> None:
    good = [result.ordinal for result in results.filter("mood == 'Good'")]
    assert [result.ordinal for result in results.filter("{{ mood.answer }} == 'Good'")] == good
    assert [result.ordinal for result in results.filter("mood.answer == 'Good'")] == good
    assert len(results.filter("{{ mood.comment }} == 'since it rains'")) == 8
    assert len(results.filter("{{ agent.age }} > 21 and {{ scenario.city }} == 'Oslo'")) == 2
    assert len(results.filter("{{ age }} > 21 and {{ city }} == 'Oslo'")) == 2


def test_a_field_with_a_space_is_filtered_by_in_brackets(tmp_path: Path) -> None:
    of = files.job(files.survey("q"), scenarios=[Scenario({"Review Text": text}) for text in ("fine", "bad")])
    with Results.open(files.write(tmp_path / "s.run", of, lambda _: ["x"])) as results:
        assert len(results.filter("{{ scenario[\"Review Text\"] }} == 'bad'")) == 1
        assert results.select("Review Text").to_list() == ["fine", "bad"]


def test_data_comes_before_a_part_of_the_same_bare_name(tmp_path: Path) -> None:
    of = files.job(files.survey("q", "q_comment"), [Agent({"q_cost": 5})])
    with Results.open(files.write(tmp_path / "c.run", of, lambda _: ["x", "an answer"])) as results:
        assert results.select("q_comment", "q_cost").columns == ["answer.q_comment", "agent.q_cost"]
        assert results.select("comment.q_comment").to_dicts() == [{"q_comment": "since it rains"}]


def test_an_agent_without_a_name_goes_by_its_place(tmp_path: Path) -> None:
    of = files.job(files.survey("q"), [Agent({"n": 1}), Agent({"n": 2}, name="bob")])
    with Results.open(files.write(tmp_path / "a.run", of, lambda _: ["x"])) as results:
        assert results.select("agent_name").to_list() == ["Agent_0", "bob"]
        assert [r.ordinal for r in results.filter("agent_name == 'Agent_0'")] == [0]
        assert [r.ordinal for r in results.sort_by("agent_name", reverse=True)] == [1, 0]


def test_a_question_that_failed_is_told_apart_in_sql_and_row_by_row(results: Results) -> None:
    for condition in (
        "failed.mood_failed",
        "mood.failed == True",
        "failed.mood_failed and not validated.mood_validated",
    ):
        assert [each.ordinal for each in results.filter(condition)] == [3]
    assert len(results.filter("not failed.rating_failed")) == 8
    assert results.select("mood_failed").to_list() == [n == 3 for n in range(8)]
    assert results.tally("mood_failed", output="dict") == {False: 7, True: 1}


def test_a_failed_question_is_not_validated(results: Results) -> None:
    assert results.select("mood_validated").to_list() == [n % 7 != 3 for n in range(8)]


def test_mistakes_get_the_nearest_name(results: Results) -> None:
    with pytest.raises(InvalidInput, match=r"Did you mean 'comment.mood_comment'"):
        results.select("coment.mood_coment")
    with pytest.raises(InvalidInput, match=r"Did you mean 'prompt.rating_user_prompt'"):
        results.filter("prompt.rating_userprompt == 'x'")
    with pytest.raises(InvalidInput, match="No column is called like"):
        results.select("nothing_*")


def test_details_are_unpacked_only_for_columns_that_need_them(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked: list[bytes] = []
    unpack = DetailPacker.unpack
    monkeypatch.setattr(DetailPacker, "unpack", lambda self, packed: unpacked.append(packed) or unpack(self, packed))
    results.select("answer.*", "question_text.*", "agent.*").filter("rating > 1").to_dicts()
    assert unpacked == []
    results.select("mood_comment", "prompt.*", "mood_cost").to_dicts()
    assert len(unpacked) == 8


def test_a_damaged_detail_is_an_error_with_its_ordinal(results: Results) -> None:
    connection = open_writer(results.path)
    detail = bytearray(connection.execute("SELECT detail FROM details WHERE ordinal = 5").get)
    detail[-6] ^= 1
    connection.execute("UPDATE details SET detail = ? WHERE ordinal = 5", (bytes(detail),))
    connection.close()
    with pytest.raises(RunFileDamaged, match="Interview 5"):
        results.select("mood_comment").to_dicts()


def test_many_questions_find_their_parts(tmp_path: Path) -> None:
    names = [f"q{n}" for n in range(1_200)]
    path = files.write(tmp_path / "w.run", files.job(files.survey(*names)), lambda _: ["x"] * 1_200)
    with Results.open(path) as results:
        row = results.select("q1100_user_prompt", "q0_comment", "answer.q1199").to_dicts()[0]
        assert row == {"q1100_user_prompt": "Please answer 1100.", "q0_comment": "since it rains", "q1199": "x"}
        assert len(results.select("comment.*").columns) == 1_200


CHAT = {"choices": [{"message": {"content": "Good", "reasoning_content": "hm"}}], "usage": {"prompt_tokens": 3}}
MESSAGE = {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Good"}]}
TOOL = {"content": [{"type": "tool_use", "input": {"answer": 5}}]}
STREAM = (
    b'data: {"choices":[{"delta":{"content":"Go"}}]}\n\n'
    b'data: {"choices":[{"delta":{"content":"od"}}]}\n\ndata: [DONE]\n'
)
EVENTS = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Go"}}\n\n'
    b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"od"}}\n\ndata: {"type":"message_stop"}\n'
)


def test_the_generated_text_is_found_in_what_services_send() -> None:
    chat, message, tool = map(msgspec.json.encode, (CHAT, MESSAGE, TOOL))
    assert [generated_text(raw) for raw in (chat, message, STREAM, EVENTS, b"Good")] == ["Good"] * 5
    assert generated_text(tool) == '{"answer":5}'
    assert generated_text(b'{"answer": 5}') == '{"answer": 5}'
    assert [reasoning_text(raw) for raw in (chat, message, STREAM, b"x")] == ["hm", "hm", None, None]
    assert decoded_response(chat) == CHAT
    assert decoded_response(b"\xff text") == "� text"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b'{"choices":[{"message":{"content":"caf\xe9"}}]}', "caf\ufffd"),
        (b'{"choices":[{"message":{"content":"a\\ud800b"}}]}', "a\ufffdb"),
        (b'\xef\xbb\xbf{"choices":[{"message":{"content":"Good"}}]}', "Good"),
        (b'{"choices":[{"message":{"content":"Good"},"logprobs":[NaN,-Infinity]}]}', "Good"),
        (b'data: {"choices":[{"delta":{"content":"caf\xe9"}}]}\n\ndata: [DONE]\n\n', "caf\ufffd"),
    ],
)
def test_a_response_that_is_not_quite_json_does_not_make_its_file_unreadable(raw: bytes, text: str) -> None:
    """One byte that was not UTF-8, and the columns of every interview were refused as those of a damaged file."""
    assert generated_text(raw) == text
    assert reasoning_text(raw) is None
    found = decoded_response(raw)
    assert isinstance(found, str) == raw.startswith(b"data")
    assert msgspec.json.encode(found)  # whatever is exported can be written


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[[", b'{"choices": 5}', b'{"choices": [null, {"message": []}]}', b"data: x"]
)
def test_odd_responses_are_shown_as_they_are(raw: bytes) -> None:
    assert generated_text(raw) == raw.decode()
    assert reasoning_text(raw) is None


def test_one_result_has_them_by_edsls_names(results: Results) -> None:
    result = results[0]
    assert result["comment"] == {"mood_comment": "since it rains", "rating_comment": None}
    assert result["prompt"]["mood_user_prompt"] == result.get_value("prompt", "mood_user_prompt") == "Please answer 0."
    assert result["question_text"]["rating_question_text"] == "What of rating?"
    assert result["raw_model_response"]["mood_cost"] == 0.0
    assert result.get_answer("mood") == result.get_value("answer", "mood") == "Good"
    assert result.get_value("model", "inference_service") == "test"
    assert result.get_value("iteration", "iteration") == 0
    with pytest.raises(InvalidInput, match="Did you mean 'mood'"):
        result.get_answer("mod")
    with pytest.raises(InvalidInput, match="Did you mean 'comment'"):
        result["commment"]


def test_options_are_those_that_the_interview_saw(tmp_path: Path) -> None:
    first = QuestionMultipleChoice(
        question_name="city", question_text="Or {{ or }}?", question_options=["Oslo", "Lima"]
    )
    second = QuestionMultipleChoice(
        question_name="stay", question_text="And?", question_options=["stay in {{ city.answer }}", "{{ scenario.or }}"]
    )
    listed = QuestionMultipleChoice(question_name="pick", question_text="?", question_options="{{ scenario.options }}")
    scenarios = [Scenario({"or": "go", "options": ["a", "b"]}), Scenario({"or": "run", "options": [1, 2]})]
    of = files.job(Survey([first, second, listed]), scenarios=scenarios)
    path = files.write(tmp_path / "o.run", of, lambda n: [["Oslo", "Lima"][n], "go", "a"])
    with Results.open(path) as results:
        assert results.select("question_options.*").to_list() == [
            (["Oslo", "Lima"], ["stay in Oslo", "go"], ["a", "b"]),
            (["Oslo", "Lima"], ["stay in Lima", "run"], [1, 2]),
        ]
        cities = [["Oslo", "Lima"]] * 2
        assert results.select("city_question_options").to_list() == cities
        assert [result["question_options"]["city_question_options"] for result in results] == cities
        assert results.select("stay_question_text").first() == "And?"
        assert len(results.filter("'go' in stay_question_options")) == 1
