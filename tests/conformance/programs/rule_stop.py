"""A stop rule ends the interview after its question."""

from edsl import Model, QuestionFreeText, QuestionYesNo, Survey

adult = QuestionYesNo(question_name="adult", question_text="Are you of age?")
drink = QuestionFreeText(question_name="drink", question_text="What do you drink?")
bye = QuestionFreeText(question_name="bye", question_text="Anything else?")
survey = Survey([adult, drink, bye]).add_stop_rule("adult", "adult == 'No'")

value = []
for answer in ("Yes", "No"):
    model = Model("test", canned_response={"adult": answer, "drink": "tea", "bye": "no"})
    value.append(survey.by(model).run().select("adult", "drink", "bye").to_list())
