"""A list may have a least and a greatest length."""

from edsl import Model, QuestionList

q = QuestionList(question_name="foods", question_text="Which foods do you like?", min_list_items=2, max_list_items=3)
value = []
for answer in ('["bread"]', '["bread", "cheese"]', '["bread", "cheese", "milk", "eggs"]'):
    value.append(q.by(Model("test", canned_response=answer)).run().select("foods").to_list())
