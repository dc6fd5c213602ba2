"""The options of a question as an interview saw them, read back from the file."""

from pathlib import Path

from headrace import Agent, Model, QuestionFreeText, QuestionMultipleChoice, Results, Scenario, Survey

COLUMN = "question_options.pick_question_options"


def pick(options: list[str] | str) -> QuestionMultipleChoice:
    return QuestionMultipleChoice(question_name="pick", question_text="Which?", question_options=options)


def shown(prompt: str) -> list[str]:
    return [line[3:] for line in prompt.splitlines() if line[:1].isdigit()]


def test_randomized_options_are_read_back_in_the_order_shown(tmp_path: Path):
    survey = Survey([pick(["a", "b", "c", "d"])], questions_to_randomize=["pick"])
    survey.by([Agent(name=str(n)) for n in range(20)], Model("test", canned_response="a")).run(tmp_path / "a.run")
    results = Results.open(tmp_path / "a.run")
    orders = results.select(COLUMN).to_list()
    assert orders == [shown(result.prompts["pick"]) for result in results]
    assert len({tuple(order) for order in orders}) > 5
    assert results[3]["question_options"]["pick_question_options"] == orders[3]


def test_options_of_data_and_answers_are_filled(tmp_path: Path):
    brands = QuestionFreeText(question_name="brand", question_text="Which?")
    survey = Survey([brands, pick(["{{ brand.answer }}", "{{ city }}", "None"])])
    model = Model("test", canned_response={"brand": "Acme", "pick": "None"})
    results = survey.by([Scenario({"city": "Oslo"}), Scenario({"city": "Lima"})], model).run(tmp_path / "a.run")
    assert results.select(COLUMN).to_list() == [["Acme", "Oslo", "None"], ["Acme", "Lima", "None"]]
    assert results.select("question_options.brand_question_options").to_list() == [None, None]
    assert results.select("answer.pick", COLUMN).filter("scenario.city == 'Lima'").to_list()[0][1][1] == "Lima"


def test_fixed_options_and_data_that_does_not_fit(tmp_path: Path):
    results = Survey([pick(["a", "b"])]).by(Model("test", canned_response="a")).run(tmp_path / "a.run")
    assert results.select(COLUMN).to_list() == [["a", "b"]]
    given = [Scenario({"options": ["a", "b"]}), Scenario({"options": []})]
    job = Survey([pick("{{ options }}")]).by(given, Model("test", canned_response="a"))
    assert job.run(tmp_path / "b.run").select(COLUMN).to_list() == [["a", "b"], None]
