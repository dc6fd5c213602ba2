import re
from pathlib import Path

import click
import jsonschema_rs
import pytest
import typer.main

from headrace import Survey
from headrace.cli.main import app
from headrace.plan.study_files import JOB_PARTS
from headrace.plan.survey_file import SURVEY_PARTS, names_of, settings_in_files, written_kinds
from scripts.survey_schema import survey_schema
from tests.docs.documents import DOCS, Shell, code_names, files, is_as_shown, sections, session, tables
from tests.forks import Forks

DOCUMENT = (DOCS / "cli.md").read_text("utf-8")
SECTIONS = {section.title: section.text for section in sections(DOCUMENT)}
GROUP = typer.main.get_command(app)
COMMANDS = GROUP.commands
_OPTION = re.compile(r"(?<![\w,='-])--?[a-z][\w-]*")  # a minus in a list of columns is none


def options_of(command: click.Command) -> set[str]:
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    return {name for option in options for name in (*option.opts, *option.secondary_opts)}


OF_ALL = options_of(GROUP) | {"--help"}


def named_options(text: str) -> set[str]:
    """The options a text names: in code, and in sessions. A dash elsewhere, in `-3` or prose, is none."""
    typed = [line for line in text.splitlines() if line.startswith(("$", "    --"))]
    return {option for code in (*code_names(text), *typed) for option in _OPTION.findall(code)}


def commands_in(text: str) -> set[str]:
    typed = re.findall(r"^\$ (.*)", text, re.MULTILINE)
    return {name for code in (*code_names(text), *typed) for name in re.findall(r"\bheadrace ([a-z]+)", code)}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_stands_under_its_command(name: str):
    assert f"headrace {name}" in SECTIONS, f"docs/cli.md has no heading for `headrace {name}`"
    text = SECTIONS[f"headrace {name}"]
    missing = options_of(COMMANDS[name]) - set(code_names(text))  # an example alone explains nothing
    assert not missing, f"docs/cli.md does not say what {missing} do under `headrace {name}`"
    in_tables = {option for table in tables(text) for row in table for option in code_names(row[0])}
    assert in_tables <= options_of(COMMANDS[name]), "a table there lists an option that does not exist"


def test_the_options_of_every_command_are_told():
    assert {code_names(row[0])[0] for row in tables(SECTIONS["Every command"])[0]} == OF_ALL


def test_no_option_is_named_that_does_not_exist():
    of_any = OF_ALL.union(*map(options_of, COMMANDS.values()))
    for title, text in SECTIONS.items():
        own = COMMANDS.get(title.removeprefix("headrace "))
        for line in text.splitlines():
            known = OF_ALL.union(*(options_of(COMMANDS[name]) for name in commands_in(line) & set(COMMANDS)))
            known |= options_of(own) if own else of_any
            unknown = named_options(line) - known - {"--colour", "-c"}  # a mistake, and Python's
            assert not unknown, f"docs/cli.md, {title!r}: {unknown} in {line!r}"


def test_no_command_is_named_that_does_not_exist():
    assert commands_in(DOCUMENT) == set(COMMANDS)
    assert {title for title in SECTIONS if title.startswith("headrace ")} == {f"headrace {name}" for name in COMMANDS}


def test_the_commands_with_sessions_are_run_as_shown(tmp_path: Path, forks: Forks):
    work = tmp_path / "work"
    work.mkdir()
    for name, content in files(DOCUMENT).items():
        (work / name).write_text(content, "utf-8")
    shell, seen = Shell(tmp_path, work, forks), set[str]()
    for command in session(DOCUMENT):
        code, printed = shell.run(command.words)
        assert code == command.exit_code, f"{command.words}\n{printed}"
        assert is_as_shown(printed, command.shown), f"$ {command.words}\n{printed}\nand not\n{command.shown}"
        seen |= commands_in(f"$ {command.words}")
    assert seen == set(COMMANDS), "each command has an example"


def test_the_kinds_of_question_are_those_there_are():
    _, table = tables(SECTIONS["The files"])
    told = {code_names(kind)[0]: set(code_names(settings)) for kind, settings in table}
    every = {"name", "text", "answering_instructions", "question_presentation", "model", "include_comment"}
    for kind in written_kinds():
        own = {names_of(field.name)[0] for field in settings_in_files(kind)} - every
        assert told.pop(kind.kind) == own, kind
    assert told == {}


def test_the_parts_of_a_survey_file_are_those_there_are():
    table, _ = tables(SECTIONS["The files"])
    parts = [name for names, _ in table for name in code_names(names)]
    assert {*parts, "$schema"} == {*SURVEY_PARTS, *JOB_PARTS} == survey_schema()["properties"].keys()


def test_the_example_of_rules_is_a_survey(tmp_path: Path):
    (written,) = [block for block in re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL) if "rules:" in block]
    (tmp_path / "survey.yaml").write_text(written, "utf-8")
    survey = Survey.load(tmp_path / "survey.yaml")
    assert [rule.target for rule in survey.rules] == ["wish", "EndOfSurvey"]
    assert survey.memory["wish"] == ("pet", "kind")
    assert jsonschema_rs.is_valid(survey_schema(), survey.to_dict())


def test_the_json_survey_is_one(tmp_path: Path):
    blocks = re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)
    (written,) = [block for block in blocks if "questions" in block and "edsl_version" not in block]
    (tmp_path / "survey.json").write_text(written, "utf-8")
    assert len(Survey.load(tmp_path / "survey.json")) == 2


@pytest.mark.parametrize(
    ("printed", "shown"),
    [("9 of 12 done\n", "9 of 13 done\n"), ("a\nb\nc\n", "a\n...\nb\n"), ("57 KB on disk\n", "on disk\n"), ("", "a\n")],
)
def test_another_output_than_the_one_shown_is_noticed(printed: str, shown: str):
    assert not is_as_shown(printed, shown)


def test_sizes_times_and_what_is_left_out_may_differ():
    assert is_as_shown("a\nb\nc, 5.0 s\n43 MB  used  \n", "a\n...\nc, 0.1 s\n7 GB used\n")
