import functools
from typing import Any

from headrace.survey.function_reference import function_reference


def made_without_source(text: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(text, namespace)  # noqa: S102 - a function that has no file
    return namespace["f"]


class Answering:
    def __call__(self, request: object) -> str:
        return "x"


class AnsweringElse:
    def __call__(self, request: object) -> str:
        return "y"


def same(request: object, text: str) -> str:
    return text


def test_a_function_is_known_by_its_source():
    first, second = (lambda r: "a"), (lambda r: "b")
    assert function_reference(same) == function_reference(same)
    assert function_reference(first) != function_reference(second)


def test_functions_without_source_are_told_apart_by_what_they_say():
    one, other = made_without_source("f = lambda r: 'A'"), made_without_source("f = lambda r: 'B'")
    assert function_reference(one) != function_reference(other)
    inner = [made_without_source(f"def f(r):\n    def g(): return {text!r}\n    return g()") for text in "AB"]
    assert function_reference(inner[0]) != function_reference(inner[1])


def test_a_partial_counts_by_its_function_and_arguments():
    assert function_reference(functools.partial(same, text="a")) == function_reference(
        functools.partial(same, text="a")
    )
    assert function_reference(functools.partial(same, text="a")) != function_reference(
        functools.partial(same, text="b")
    )
    assert function_reference(functools.partial(same, "a")) != function_reference(functools.partial(print, "a"))


def test_a_callable_object_counts_by_its_class():
    assert function_reference(Answering()) == function_reference(Answering())
    assert function_reference(Answering()) != function_reference(AnsweringElse())
