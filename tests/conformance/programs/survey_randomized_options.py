"""Options in an order of chance: the same ones, and the answer is one of them."""

from edsl import Model, QuestionMultipleChoice, Survey

options = ["one", "two", "three", "four", "five"]
q = QuestionMultipleChoice(question_name="pick", question_text="Which?", question_options=options)
survey = Survey([q], questions_to_randomize=["pick"])
results = survey.by(Model("test", canned_response="three")).run(n=3)
shown = results.select("question_options.pick_question_options").to_list()

value = [results.select("pick").to_list(), [sorted(each) for each in shown]]
