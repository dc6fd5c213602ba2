"""Verbs that cut, pair, join and group the rows of lists; each is lazy, and what is large lies on disk."""

import hashlib

import pytest

from headrace import Agent, AgentList, FileStore, Model, QuestionFreeText, ScenarioList, Survey
from headrace.errors import ListError
from headrace.plan.rows import joined_lists
from headrace.plan.rows.derived import DerivedRows

LEFT = ScenarioList([{"k": 1, "a": "x"}, {"k": 2, "a": "y"}, {"k": 2, "a": "z"}, {"k": 4, "a": "w"}, {"a": "none"}])
RIGHT = ScenarioList(
    [{"k": 2.0, "b": "B2"}, {"k": 2, "b": "B2b"}, {"k": 1, "b": "B1"}, {"k": 9, "b": "B9"}, {"k": None}]
)


def _dicts(listed):
    assert isinstance(listed.source, DerivedRows)
    return [dict(row) for row in listed]


def test_a_text_is_cut_into_parts_of_words_or_lines():
    text = "one two three\nfour  five"
    listed = ScenarioList([{"t": text, "n": 1}])
    assert _dicts(listed.chunk("t", num_words=2)) == [
        {"t": "one two", "n": 1, "t_chunk": 0, "t_char_count": 7, "t_word_count": 2},
        {"t": "three four", "n": 1, "t_chunk": 1, "t_char_count": 10, "t_word_count": 2},
        {"t": "five", "n": 1, "t_chunk": 2, "t_char_count": 4, "t_word_count": 1},
    ]
    lines = listed.chunk("t", num_lines=1, include_original=True)
    assert [(row["t"], row["t_original"]) for row in lines] == [("one two three", text), ("four  five", text)]
    hashed = listed.chunk("t", num_lines=9, include_original=True, hash_original=True)
    assert hashed[0]["t_original"] == hashlib.md5(text.encode()).hexdigest()
    assert len(AgentList([Agent({"t": text})]).chunk("t", num_words=1)) == 5
    for given in ({}, {"num_words": 1, "num_lines": 1}, {"num_words": 0}):
        with pytest.raises(ListError, match="cut"):
            listed.chunk("t", **given)
    with pytest.raises(ListError, match="Row 0: 'n' is no text"):
        len(listed.chunk("n", num_words=2))


def test_the_text_of_a_file_is_cut(tmp_path):
    (tmp_path / "a.txt").write_text("one two three")
    listed = ScenarioList([{"report": FileStore(tmp_path / "a.txt")}]).chunk("report", num_words=2)
    assert [row["report"] for row in listed] == ["one two", "three"]


def test_lists_are_joined_as_in_sql():
    pairs = [
        {"k": 1, "a": "x", "b": "B1"},
        {"k": 2, "a": "y", "b": "B2"},
        {"k": 2, "a": "y", "b": "B2b"},
        {"k": 2, "a": "z", "b": "B2"},
        {"k": 2, "a": "z", "b": "B2b"},
    ]
    assert _dicts(LEFT.inner_join(RIGHT, by="k")) == pairs
    alone = [{"k": 4, "a": "w", "b": None}, {"k": None, "a": "none", "b": None}]
    assert _dicts(LEFT.left_join(RIGHT, by=["k"])) == pairs + alone
    right = LEFT.right_join(RIGHT, by="k")
    assert [(row["a"], row["k"], row["b"]) for row in right] == [
        ("y", 2, "B2"), ("z", 2, "B2"), ("y", 2, "B2b"), ("z", 2, "B2b"), ("x", 1, "B1"), (None, 9, "B9"),
        (None, None, None),
    ]  # fmt: skip
    assert right.field_names == ["k", "a", "b"]
    with pytest.raises(ListError, match=r"No scenario of the list has a .*'b'"):
        LEFT.inner_join(RIGHT, by="b")
    with pytest.raises(ListError, match="joined with a list"):
        LEFT.inner_join([{"k": 1}], by="k")


@pytest.mark.parametrize("held_bytes", [32_000_000, 1_000])
def test_long_lists_are_joined_in_the_order_of_the_first(held_bytes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(joined_lists, "_HELD_BYTES", held_bytes)
    monkeypatch.setattr(joined_lists, "_AHEAD_BYTES", 1_000)
    count = 12_000
    left = ScenarioList({"k": (n * 7) % count, "n": n} for n in range(count))
    right = ScenarioList({"k": n, "half": n / 2} for n in range(0, count, 3))
    joined = left.inner_join(right, by="k")
    assert len(joined) == len(right)
    assert all(row["half"] == row["k"] / 2 and row["k"] == row["n"] * 7 % count for row in joined.head(100))
    assert [row["n"] for row in joined.head(50)] == sorted(row["n"] for row in joined.head(50))


@pytest.mark.parametrize("kind", ["inner_join", "left_join", "right_join"])
@pytest.mark.parametrize("ahead_bytes", [500_000, 0])
def test_a_join_is_the_same_in_memory_and_on_disk(kind, ahead_bytes, monkeypatch: pytest.MonkeyPatch):
    left = ScenarioList({"k": n % 7 or None, "t": "é" * (n % 3), "n": n} for n in range(40))
    right = ScenarioList({"k": n % 9 / 1, "m": [n], "n": -n} for n in range(30))
    in_memory = getattr(left, kind)(right, by="k").to_dicts()
    monkeypatch.setattr(joined_lists, "_HELD_BYTES", 300)
    monkeypatch.setattr(joined_lists, "_AHEAD_BYTES", ahead_bytes)
    assert getattr(left, kind)(right, by="k").to_dicts() == in_memory
    frames = left.to_pandas().merge(right.to_pandas().dropna(), on="k", how=kind.removesuffix("_join"))
    if kind == "inner_join":
        assert [(row["n"], row["m"][0]) for row in in_memory] == [
            (n, int(str(m).strip("[]"))) for n, m in zip(frames["n_x"], frames["m"], strict=True)
        ]


def test_agents_are_joined_by_name_and_keep_their_own():
    one = AgentList([Agent({"age": 1}, name="Ann", codebook={"age": "Age"}), Agent({"age": 2}, name="Bo")])
    two = AgentList(
        [Agent({"city": "Oslo", "age": 9}, name="Bo", codebook={"city": "Town"}), Agent({"city": "Rome"}, name="Cy")]
    )
    assert [(agent.name, agent.traits) for agent in one.join(two)] == [("Bo", {"age": 2, "city": "Oslo"})]
    left = one.join(two, "left")
    assert [(agent.name, dict(agent.codebook)) for agent in left] == [("Ann", {"age": "Age"}), ("Bo", {})]
    assert [agent.name for agent in one.join(two, "right")] == ["Bo", "Cy"]
    with pytest.raises(ListError, match=r"no join 'iner'.*inner"):
        one.join(two, "iner")


def test_comparisons_are_made_one_by_one():
    letters = ScenarioList.from_list("x", ["a", "b", "c"])
    pairs = letters.create_comparisons()
    assert pairs.field_names == ["option_1", "option_2"]
    assert [(row["option_1"]["x"], row["option_2"]["x"]) for row in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    both = letters.create_comparisons(bidirectional=True, use_alphabet=True)
    assert ["".join(side["x"] for side in row.values()) for row in both] == ["ab", "ac", "ba", "bc", "ca", "cb"]
    assert len(letters.create_comparisons(num_options=3, bidirectional=True)) == 6
    many = ScenarioList.from_list("x", range(100_000)).create_comparisons(option_prefix="o")
    assert many.head(2).to_list() == [({"x": 0}, {"x": 1}), ({"x": 0}, {"x": 2})]  # of five billion
    with pytest.raises(ListError, match="num_options cannot be 1"):
        letters.create_comparisons(num_options=1)
    with pytest.raises(ListError, match="26 letters"):
        letters.create_comparisons(num_options=30, use_alphabet=True)


def test_choices_of_rows_with_one_field():
    letters = ScenarioList.from_list("x", ["a", "b", "c"])
    assert _dicts(letters.choose_k(2)) == [{"x_1": "a", "x_2": "b"}, {"x_1": "a", "x_2": "c"}, {"x_1": "b", "x_2": "c"}]
    assert len(letters.choose_k(2, order_matters=True)) == 6
    with pytest.raises(ListError, match="rows of one field"):
        len(ScenarioList([{"a": 1, "b": 2}, {"a": 1, "b": 3}]).choose_k(2))


def test_rows_are_pivoted_and_collapsed():
    long = ScenarioList([{"id": 1, "p": 5, "q": 6}, {"id": 2, "p": 7, "q": 8}]).unpivot(["id"])
    assert _dicts(long.pivot(["id"])) == _dicts(long.pivot()) == [{"id": 1, "p": 5, "q": 6}, {"id": 2, "p": 7, "q": 8}]
    rows = ScenarioList([{"g": 1, "v": "a"}, {"g": 2, "v": "c"}, {"g": 1, "v": "b"}])
    assert _dicts(rows.collapse("v")) == [{"g": 1, "v": ["a", "b"]}, {"g": 2, "v": ["c"]}]
    assert rows.collapse("v", separator="; ", prefix="<", postfix=">", add_count=True).to_list() == [
        (1, "<a>; <b>", 2),
        (2, "<c>", 1),
    ]


def test_fields_are_zipped_and_made_sets():
    listed = ScenarioList([{"a": ["x", "y"], "b": [1, 2]}]).zip("a", "b", "c")
    assert listed[0]["c"] == {"x": 1, "y": 2}
    assert ScenarioList([{"a": 1, "b": 1}]).concatenate_to_set(["a", "b"])[0] == {"concat_a_b": [1]}
    with pytest.raises(ListError, match="are no lists"):
        len(ScenarioList([{"a": 1, "b": [1]}]).zip("a", "b", "c"))


def test_lists_of_nested_dicts():
    data = {"x": {"a": 1}, "y": {"a": 2}}
    assert ScenarioList.from_nested_dict(data, id_field="key").to_dicts() == [
        {"a": 1, "key": "x"},
        {"a": 2, "key": "y"},
    ]
    assert AgentList.from_nested_dict(data, id_field="name").names == ["x", "y"]
    assert ScenarioList.from_nested_dict({"a": [1, 2]}).to_list() == [1, 2]


def test_results_are_the_lists_of_the_next_survey(tmp_path):
    survey = Survey([QuestionFreeText(question_name="q", question_text="{{ scenario.city }}?")])
    job = survey.by(AgentList([Agent({"age": 3}, name="Ann")])).by(ScenarioList.from_list("city", ["Oslo", "Lima"]))
    results = job.by(Model("test", canned_response="Yes")).run(tmp_path / "a.run")
    scenarios = ScenarioList.from_results(results, "scenario.city", "answer.q")
    assert scenarios.to_dicts() == [{"city": "Oslo", "q": "Yes"}, {"city": "Lima", "q": "Yes"}]
    assert {"age", "city", "q"} <= set(ScenarioList.from_results(results).field_names)
    agents = AgentList.from_results(results)
    assert [(agent.name, agent.traits["age"], agent.traits["q"]) for agent in agents] == [("Ann", 3, "Yes")] * 2


def test_lists_are_written_and_read_again(tmp_path):
    listed = ScenarioList([{"n": 1, "text": "a|b", "x": 0.5}, {"n": 2, "text": None, "x": 1.5}])
    for name, write in (
        ("a.parquet", listed.to_parquet),
        ("a.xlsx", listed.to_excel),
        ("a.db", listed.to_sqlite),
        ("a.jsonl", listed.to_jsonl),
    ):
        assert ScenarioList.from_file(write(tmp_path / name)) == listed, name
    assert ScenarioList.from_arrow(listed.to_arrow()) == listed
    assert listed.to_polars().to_dicts() == listed.to_dicts()
    assert listed.to_markdown().splitlines()[0].split() == ["|", "n", "|", "text", "|", "x", "|"]
    assert "<table" in listed.to_html()
    assert listed.to_html(tmp_path / "a.html").exists()
    read = ScenarioList.from_parquet(tmp_path / "a.parquet")
    with pytest.raises(Exception, match="The list is read from"):
        read.to_parquet(tmp_path / "a.parquet")
