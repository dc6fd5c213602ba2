"""answering_instructions stands in the place of the usual ones."""

from edsl import Model, QuestionFreeText

q = QuestionFreeText(
    question_name="poem", question_text="Write a poem.", answering_instructions="Answer in exactly three words."
)
results = q.by(Model("test", canned_response="Roses are red")).run()
prompt = str(results.select("prompt.poem_user_prompt").to_list()[0])

value = ["Write a poem." in prompt, "Answer in exactly three words." in prompt]
