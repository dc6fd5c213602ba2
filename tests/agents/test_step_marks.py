"""What a mark sees and what it leaves out; the same in every process."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.agents.step_marks import StepMark, mark_of, mark_of_encoded, mark_of_program


def greet(name, mark="!"):
    return name + mark if name in {"ada", "bob", "cleo", "dora"} else ""


def other(name, mark="!"):
    return mark + name


def changes(before, after):
    old, new = StepMark.read(before), StepMark.read(after)
    assert old is not None
    assert new is not None
    return new.differs_in(old)


def made(function, *args, **keywords):
    return mark_of(0, function, args, keywords)


@pytest.mark.parametrize(
    "value",
    [
        1,
        2**80,
        "x" * 3_000_000,
        b"y" * 3_000_000,
        "\ud800",
        {1: "a", "b": {2, 3}},
        {("a", 1): [2**70]},
        Path("/tmp"),
        [None, True, 1.5, float("nan")],
        memoryview(b"abc"),
    ],
)
def test_equal_arguments_have_equal_marks_and_others_differ(value):
    assert changes(made(greet, value, k=value), made(greet, value, k=value)) == []
    assert changes(made(greet, value), made(greet, [value])) == ["other arguments"]


def test_an_object_counts_by_its_type_and_what_cannot_be_encoded_is_unknown():
    endless = []
    endless.append(endless)
    assert changes(made(greet, object()), made(greet, object())) == []
    assert changes(made(greet, object()), made(greet, print)) == ["other arguments"]
    assert changes(made(greet, endless), made(greet, 3)) == []


def test_functions_differ_by_name_by_code_and_by_what_a_partial_binds():
    assert changes(made(greet), made(other)) == ["another function"]
    assert changes(made(functools.partial(greet, "a")), made(functools.partial(greet, "b"))) == [
        "other code of its function"
    ]
    assert changes(made(functools.partial(greet, "a")), made(functools.partial(greet, "a"))) == []
    assert changes(made(divmod, 1), made(divmod, 1)) == []


def test_defaults_count_for_each_function_of_one_code():
    first, second = (lambda name=name: name for name in ("ada", "bob"))
    assert changes(made(first), made(second)) == ["other code of its function"]
    assert changes(made(second), made(second)) == []


def test_text_and_numbers_that_a_function_has_captured_count_and_what_steps_may_change_does_not():
    def capturing(amount, seen):
        return lambda: (amount, seen)

    assert changes(made(capturing(5, [])), made(capturing(5, [1]))) == []
    assert changes(made(capturing(5, [])), made(capturing(10, []))) == ["other captured values"]
    partial = functools.partial
    assert changes(made(partial(capturing("a", 0))), made(partial(capturing("b", 0)))) == ["other captured values"]


def test_a_mark_of_an_earlier_version_is_compared_as_far_as_it_goes():
    former = made(greet, 1)[:-6]
    assert changes(former, made(greet, 1)) == []
    assert changes(former, made(greet, 2)) == ["other arguments"]


def test_code_of_another_python_is_not_compared():
    one, two = StepMark.read(made(greet)), StepMark.read(made(greet))
    assert one is not None
    assert two is not None
    assert two._replace(python=1, code=b"abcdef").differs_in(one) == []


def test_calls_are_marked_by_what_they_say():
    assert changes(mark_of_encoded(0, "ask", b"a"), mark_of_encoded(0, "ask", b"b")) == ["other arguments"]
    assert StepMark.read(b"") is None


def test_a_mark_is_the_same_in_another_process():
    program = "from tests.agents import test_step_marks as t; print(t.made(t.greet, {'ada', 'bob', 'cleo'}).hex())"
    root = str(Path(__file__).parents[2])
    marks = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert marks == {f"{made(greet, {'ada', 'bob', 'cleo'}).hex()}\n"}


def of_program(environment=None, directory="."):
    return mark_of_program(0, b"pay", directory, environment)


def test_a_program_s_directory_counts_as_given_and_its_environment_in_any_order(tmp_path, monkeypatch):
    before = of_program({"A": "1", "B": "2"}, "data")
    monkeypatch.chdir(tmp_path)  # started elsewhere
    assert changes(before, of_program({"B": "2", "A": "1"}, Path("./data"))) == []
    for other in (of_program({"A": "1", "B": "2"}), of_program({"A": "1"}, "data"), of_program(None, "data")):
        assert changes(before, other) == ["another directory or environment"]
    assert changes(of_program(), of_program({})) == ["another directory or environment"]
    assert changes(of_program({"A": "\ud800"}), of_program({"A": "\ud801"})) == ["another directory or environment"]


def test_variables_that_a_program_gets_as_this_process_has_them_do_not_count(monkeypatch):
    monkeypatch.setenv("SHELL_LEVEL", "1")
    before = of_program({**os.environ, "AMOUNT": "5"})
    monkeypatch.setenv("SHELL_LEVEL", "2")
    monkeypatch.setenv("SINCE_THEN", "new")
    assert changes(before, of_program({**os.environ, "AMOUNT": "5"})) == []
    assert changes(before, of_program({**os.environ, "AMOUNT": "6"})) == ["another directory or environment"]
    assert changes(before, of_program({**os.environ, "AMOUNT": "5", "SHELL_LEVEL": "1"})) != []


def test_a_written_out_environment_is_the_same_whatever_this_process_has_in_common_with_it(monkeypatch):
    written = {"LANG": "C.UTF-8", "AMOUNT": "5"}
    monkeypatch.setenv("LANG", "C.UTF-8")
    before = of_program(written)
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    assert changes(before, of_program(written)) == []
    assert StepMark.read(of_program(written)).is_same_effect(StepMark.read(before))
    for other in ({**written, "AMOUNT": "6"}, {**written, "LANG": "C"}, {}):
        assert changes(before, of_program(other)) == ["another directory or environment"]
        assert not StepMark.read(of_program(other)).is_same_effect(StepMark.read(before))


def test_a_mark_with_one_digest_of_an_environment_does_not_tell_that_it_has_changed(monkeypatch):
    written = {"LANG": "C.UTF-8", "AMOUNT": "5"}
    monkeypatch.setenv("LANG", "C.UTF-8")
    now = StepMark.read(of_program(written))
    before = now._replace(code=bytes(6))
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    assert StepMark.read(of_program(written)).differs_in(before) == []
    assert now.is_same_effect(before)
    assert not StepMark.read(of_program({"AMOUNT": "7"})).is_same_effect(before)  # so that it may be done beside it


def test_a_program_s_mark_of_an_earlier_version_differs_in_nothing_new():
    earlier = mark_of_encoded(0, "command", b"pay")
    assert changes(earlier, of_program({"AMOUNT": "500"}, "/")) == []
    assert changes(earlier[:-6], of_program({"AMOUNT": "500"}, "/")) == []
    assert changes(earlier, mark_of_program(0, b"other", "/", None)) == ["other arguments"]


def test_a_mark_holds_no_more_of_an_environment_than_a_digest_of_it():
    one, other = of_program({"TOKEN": "a"}), of_program({"TOKEN": "a" * 10_000})
    assert len(one) == len(other) == len(made(greet))
    assert b"TOKEN" not in other
