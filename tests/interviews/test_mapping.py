from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

import pandas as pd
import pytest

from headrace import Job, Model, ModelList, Results
from headrace.errors import ListError, SurveyError
from headrace.models.provider import Request

LABEL = {
    "type": "object",
    "properties": {"label": {"enum": ["good", "bad"]}, "sure": {"type": "boolean"}},
    "required": ["label"],
}
ROWS = [{"id": 7, "text": "fine"}, {"id": 8, "text": "awful"}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "labels.run"


def labelled(request: Request) -> Any:
    return {"label": "good" if "fine" in request.user_prompt else "bad", "sure": True}


def test_exactly_the_text_is_sent_and_no_persona(path: Path):
    seen: list[tuple[str, str]] = []

    def answer(request: Request) -> str:
        seen.append((request.system_prompt, request.user_prompt))
        return "x"

    Job.map("  Translate:\n{{ text }}", ROWS).by(Model("test", canned_response=answer)).run(path)
    assert seen == [("", "  Translate:\nfine"), ("", "  Translate:\nawful")]


def test_a_system_prompt_is_sent_where_one_is_asked_for(path: Path):
    job = Job.map("{{ text }}", ROWS, system_prompt="You translate.").by(Model("test", canned_response="x"))
    assert job.run(path)[0].system_prompt == "You translate."


def test_rows_keep_their_columns_and_replies_become_columns(path: Path):
    results = Job.map("{{ text }}", ROWS, schema=LABEL).by(Model("test", canned_response=labelled)).run(path)
    assert results.to_dicts() == [
        {"id": 7, "text": "fine", "label": "good", "sure": True},
        {"id": 8, "text": "awful", "label": "bad", "sure": True},
    ]
    assert results.filter("label == 'bad' and id > 7").select("text").to_dicts() == [{"text": "awful"}]
    assert results.select("te*", "lab*").to_dicts()[0] == results.select("text", "answer.la*").to_dicts()[0]
    assert list(results.sql("select id, label from self order by id desc")) == [(8, "bad"), (7, "good")]
    assert (
        results.to_csv(path.with_suffix(".csv")).read_text()
        == "id,text,label,sure\n7,fine,good,True\n8,awful,bad,True\n"
    )


def test_the_run_file_s_own_view_has_the_rows_columns(path: Path):
    import sqlite3

    Job.map("{{ text }}", ROWS, schema=LABEL).by(Model("test", canned_response=labelled)).run(path).close()
    with sqlite3.connect(path) as other_library:
        assert other_library.execute("select id, text, label from results").fetchall() == [
            (7, "fine", "good"),
            (8, "awful", "bad"),
        ]
    other_library.close()


def test_a_reply_that_does_not_fit_is_asked_for_again_and_then_recorded(path: Path):
    calls: list[str] = []

    def answer(request: Request) -> Any:
        calls.append(request.user_prompt)
        return {"label": "so-so"}

    results = Job.map("{{ text }}", ROWS[:1], schema=LABEL).by(Model("test", canned_response=answer)).run(path)
    (failed,) = results.failed()
    assert (failed.question, failed.cause) == ("output", "invalid answer")
    assert failed.message.startswith("label: ")
    assert len(calls) == 3
    assert "label: " in calls[1]
    assert results.to_dicts() == [{"id": 7, "text": "fine", "label": None, "sure": None}]


def test_a_run_goes_on_and_properties_are_not_asked_for(path: Path):
    calls: list[str] = []

    def answer(request: Request) -> Any:
        calls.append(request.user_prompt)
        return {"label": "good"}

    job = Job.map("{{ text }}", ROWS, schema=LABEL).by(Model("test", canned_response=answer))
    job.run(path, limit=1)
    results = job.run(path)
    assert (len(calls), results.stats().calls, results.stats().reused) == (2, 2, 1)
    assert Job.open(path).survey.is_mapped


def _twice_the_next(count: int, reference: str) -> dict[str, Any]:
    named = {f"d{i}": {"allOf": [{"$ref": reference.format(i + 1)}] * 2, "$anchor": f"d{i}"} for i in range(count)}
    return {"$defs": {**named, f"d{count}": {"$anchor": f"d{count}"}}, "allOf": [{"$ref": reference.format(0)}]}


@pytest.mark.parametrize("reference", ["#/$defs/d{}", "#d{}"])
def test_a_schema_of_references_to_references_is_refused(reference: str):
    with pytest.raises(SurveyError, match="too large with its references written out"):
        Job.map("{{ text }}", [{"text": "x"}], schema=_twice_the_next(40, reference))
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}}}
    Job.map("{{ text }}", [{"text": "x"}], schema=tree)


@pytest.mark.parametrize(
    ("schema", "reply", "expected"),
    [
        (None, '{"label": "x"}', '{"label": "x"}'),
        ({"enum": ["good", "bad"]}, "good", "good"),
        ({"enum": ["good", "bad"]}, '{"answer": "good"}', "good"),
        ({"type": "integer"}, "42", 42),
        ({"type": "string"}, "42", "42"),
        ({"type": "array", "items": {"type": "string"}}, '["a", "b"]', ["a", "b"]),
        ({"type": "boolean"}, "true", True),
        ({"type": "array"}, '```json\n["a"]\n```', ["a"]),
        ({"type": "object"}, '```json\n{"answer": 1, "comment": 2}\n```', {"answer": 1, "comment": 2}),
        ({"type": "object"}, "Sure! {'a': True, 'b': [1,],} Is that right?", {"a": True, "b": [1]}),
    ],
)
def test_a_reply_is_read_as_its_schema_says(path: Path, schema: Any, reply: str, expected: Any):
    job = Job.map("{{ text }}", ROWS[:1], schema=schema)
    results = job.by(Model("test", canned_response=lambda _request: reply)).run(path)  # pyright: ignore[reportUnknownLambdaType]
    assert results[0].answer == {"output": expected}
    assert type(results[0].answer["output"]) is type(expected)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"label": {"enum": ["good", "bad"]}}},
        {"$ref": "#/$defs/Label", "$defs": {"Label": LABEL}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/L", "definitions": {"L": LABEL}},
    ],
)
def test_an_object_need_not_be_called_one_in_its_schema(path: Path, schema: Any):
    job = Job.map("{{ text }}", ROWS[:1], schema=schema).by(Model("test", canned_response={"label": "good"}))
    assert job.run(path).select("label").to_dicts() == [{"label": "good"}]


def test_a_rule_beside_a_reference_is_kept(path: Path):
    schema = {"$ref": "#/$defs/Label", "$defs": {"Label": LABEL}, "required": ["sure"]}
    job = Job.map("{{ text }}", ROWS[:1], schema=schema).by(
        Model("test", canned_response=lambda _: '{"label": "good"}')
    )
    assert next(iter(job.run(path).failed())).message.startswith('"sure" is a required')


@pytest.mark.parametrize("reply", ['{"answer": null}', '{"answer": null, "comment": "none is named"}'])
def test_null_is_an_answer_where_the_schema_has_room_for_it(path: Path, reply: str):
    schema = {"type": ["string", "null"]}
    results = Job.map("{{ text }}", ROWS, schema=schema).by(Model("test", canned_response=lambda _: reply)).run(path)
    assert (results.stats().failed, results.stats().calls) == (0, 2)
    assert [row["output"] for row in results.to_dicts()] == [None, None]


@pytest.mark.parametrize("schema", [LABEL, {"type": "array"}])
def test_a_reply_nested_without_end_is_not_valid(path: Path, schema: Any):
    job = Job.map("{{ text }}", ROWS[:1], schema=schema).by(Model("test", canned_response="[" * 100_000))
    assert next(iter(job.run(path).failed())).cause == "invalid answer"


@pytest.mark.parametrize(("schema", "value"), [({"type": "boolean"}, True), ({"type": "array"}, [1, {"a": None}])])
def test_the_test_model_says_values_as_json(path: Path, schema: Any, value: Any):
    job = Job.map("{{ text }}", ROWS[:1], schema=schema).by(Model("test", canned_response=value))
    assert job.run(path)[0].answer == {"output": value}


class Label(TypedDict):
    label: Literal["good", "bad"]


@dataclass
class Scored:
    score: float


@pytest.mark.parametrize(("schema", "column"), [(Label, "label"), (Scored, "score"), (LABEL, "label")])
def test_a_schema_may_be_a_type(schema: Any, column: str):
    assert column in [
        question.question_name for question in Job.map("{{ text }}", ROWS, schema=schema).survey.questions
    ]


def test_properties_may_be_called_anything(path: Path):
    held = {name: {"type": "integer"} for name in ("answer", "model", "output", "class", "id", "two words", "Ünï")}
    schema = {"type": "object", "properties": held}
    reply = {name: place for place, name in enumerate(held)}
    job = Job.map("{{ text }}", ROWS[:1], schema=schema)
    results = job.by(Model("test", canned_response={"output_": reply})).run(path)
    (row,) = results.to_dicts()
    assert row["scenario.id"] == 7
    assert row["answer.id"] == 4
    assert (row["two words"], row["class"], row["Ünï"]) == (5, 3, 6)


def test_several_models_are_told_apart(path: Path):
    models = ModelList(Model("test", canned_response=text) for text in ("a", "b"))
    rows = Job.map("{{ text }}", ROWS[:1]).by(models).run(path).to_dicts()
    assert [(row["output"], row["model"]) for row in rows] == [("a", "test"), ("b", "test")]


def test_several_answers_to_one_row_are_told_apart(path: Path):
    rows = Job.map("{{ text }}", ROWS[:1]).by(Model("test", canned_response="a")).run(path, n=2).to_dicts()
    assert [row["iteration"] for row in rows] == [0, 1]


def test_data_may_be_a_frame_a_file_or_any_iterable(path: Path, tmp_path: Path):
    (tmp_path / "rows.csv").write_text("id,text\n7,fine\n8,awful\n")
    frame = pd.DataFrame({"id": [7, None], "text": ["fine", None]})
    assert [dict(row) for row in Job.map("{{ text }}", frame).scenarios] == [
        {"id": 7.0, "text": "fine"},
        {"id": None, "text": None},
    ]
    assert len(Job.map("{{ text }}", str(tmp_path / "rows.csv")).scenarios) == 2
    assert len(Job.map("{{ text }}", (row for row in ROWS)).scenarios) == 2


@pytest.mark.parametrize(
    ("template", "data", "schema", "message"),
    [
        ("{{ txt }}", ROWS, None, r"no row has such a column. Did you mean 'text'"),
        ("{{ text }}", [*ROWS, {"id": 9}], None, r"'text', which row 3 of 3 does not have.*default"),
        ("{{ text }}", ROWS, {"type": "objec"}, "not a valid JSON schema"),
        ("{{ text }}", ROWS, {"$ref": "https://example.org/x.json"}, "not a valid JSON schema.*outside itself"),
        ("{{ text }}", ROWS, 7, "not a schema"),
        ("{{ text ", ROWS, None, "^The prompt: the text is not a valid template"),
        ("{{ my text }}", ROWS, None, "^The prompt: .*one with a space in it is written"),
        ("{{ text | louder }}", ROWS, None, "^The prompt: unknown filter"),
        (
            "{{ text }}",
            ROWS,
            {"type": "object", "properties": {"Label": {}, "label": {}}},
            "has properties 'Label' and 'label'",
        ),
        ("", ROWS, None, "no text"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_anything_runs(
    path: Path, template: str, data: Any, schema: Any, message: str
):
    with pytest.raises(SurveyError, match=message):
        Job.map(template, data, schema=schema).by(Model("test")).run(path)
    assert not path.exists()


def test_a_frame_with_a_column_twice_is_refused():
    with pytest.raises(ListError, match="'text' twice"):
        Job.map("{{ text }}", pd.DataFrame([["a", "b"]], columns=["text", "text"]))


def test_texts_that_are_no_rows_are_refused_with_how_to_write_them():
    with pytest.raises(ListError, match=r'is a str.* or dicts, like \{"text"'):
        Job.map("{{ text }}", ["a", "b"])


@pytest.mark.parametrize("data", [{"text": "x"}, 7, [7], []])
def test_what_has_no_rows_is_refused(data: Any):
    with pytest.raises(ListError):
        Job.map("{{ text }}", data)


def test_a_default_serves_rows_that_lack_the_column(path: Path):
    job = Job.map("{{ text | default('nothing') }}", [*ROWS, {"id": 9}]).by(Model("test", canned_response="x"))
    assert job.run(path)[2].prompts == {"output": "nothing"}


def test_a_sample_is_the_same_for_the_same_seed_and_the_rest_follows(path: Path):
    job = Job.map("{{ n }}", [{"n": n} for n in range(1000)]).by(Model("test", canned_response="x"))

    def chosen(name: str, seed: int) -> list[int]:
        return [row["n"] for row in job.run(path.with_name(name), sample=30, seed=seed).to_dicts()]

    assert chosen("a.run", 1) == chosen("b.run", 1) != chosen("c.run", 2)
    again = job.run(path.with_name("a.run"), sample=30, seed=1)
    assert (len(again), again.stats().reused) == (30, 30)
    assert len(list(job.stream(path.with_name("a.run"), sample=30, seed=1))) == 30
    assert max(chosen("a.run", 1)) > 500
    everything = job.run(path.with_name("a.run"))
    assert (len(everything), everything.stats().calls) == (1000, 1000)


def test_most_of_a_plan_may_be_sampled_too(path: Path):
    job = Job.map("{{ n }}", [{"n": n} for n in range(50)]).by(Model("test", canned_response="x"))
    assert len(job.run(path, sample=49)) == 49
    assert len(job.run(path, sample=500)) == 50
    assert len(Results.open(path)) == 50
