"""An answer that does not fit the Pydantic model is no answer."""

from edsl import Model, QuestionPydantic
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


q = QuestionPydantic(question_name="who", question_text="Describe a person.", pydantic_model=Person)
results = q.by(Model("test", canned_response='{"name": "Ada", "age": "unknown"}')).run()

value = results.select("who").to_list()
