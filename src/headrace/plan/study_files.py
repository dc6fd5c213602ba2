"""A study as a file: surveys, lists and whole jobs written to YAML or JSON, and read back.

    survey:      the parts of a survey file: questions, skip, rules, memory, ...
    agents:      a list of agents, or the name of a file beside this one
    scenarios:   a list of scenarios, or such a file
    models:      a list of models, each as `gpt-4o,temperature=0.2` or with its model and parameters
    where:       a list of conditions

A survey file, with its questions at the outermost level, may have the other four too. Reading executes nothing,
contacts nobody and opens no file outside the study's folder; a model's own address or key variable in it is a claim
that a user has to allow. Functions are never written. Does not cover: what is wrong with a question in a file
(plan.survey_file).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headrace.errors import InvalidInput, ListError, OptionError, SurveyError, nearest
from headrace.plain_files.replacing import replacing
from headrace.plan.lists import AgentList, ModelList, ScenarioList
from headrace.plan.sources.jsonl_file import JsonlSource
from headrace.plan.survey_file import SURVEY_PARTS, as_mapping, read_data, survey_in
from headrace.survey.model import FromFile, Model
from headrace.survey.model_text import model_from_text
from headrace.survey.survey import Survey
from headrace.survey.values import decode_value, encode_value

if TYPE_CHECKING:
    from headrace.plan.job import Job

JOB_PARTS = ("agents", "scenarios", "models", "where")
_MOST_ROWS = 1_000  # written into the study itself; more go into a file beside it
_FORMATS = (".yaml", ".yml", ".json")
# Parameters by which a model reaches something else than its service's own address with its service's own key.
_REACHING = frozenset({"base_url", "api_key_env", "extra_headers", "extra_body", "path"})


def save(held: Survey | AgentList | ScenarioList, path: str | Path) -> None:
    """Write a survey or a list to a `.yaml`, `.yml` or `.json` file."""
    _refuse_functions(held)
    with ExitStack() as replaced:
        _write(_plain(held.to_dict()), _checked_path(path), replaced)


def load_survey(path: str | Path, allow: str | Iterable[str] = ()) -> Survey:
    """Read a survey that `save` or a person has written."""
    path = _found_path(path)
    if _is_of_edsl(path):
        return Survey.from_edsl(path)
    held = as_mapping(_with_values(read_data(path)), str(path), _BEGIN)
    if "rule_collection" in held:
        return Survey.from_edsl(path)
    elif "survey" in held:
        raise SurveyError(f"{path} holds a whole job.", fix="Read it with Job.load(path); its survey is job.survey.")
    else:
        survey = survey_in(path, held)
    return _claimed(survey, path, _names(allow))


def load(kind: Any, path: str | Path) -> Any:
    """Read a list that `save` has written of this class."""
    path = _found_path(path)
    if _is_of_edsl(path):
        return kind.from_edsl(path)
    held = _with_values(read_data(path))
    if isinstance(held, dict) and "survey" in held:
        raise ListError(f"{path} holds a whole job.", fix="Read it with Job.load(path): it has agents and scenarios.")
    if isinstance(held, dict) and "edsl_class_name" in held and path.suffix.lower() in (".json", ".gz"):
        return kind.from_edsl(path)  # which also writes out the files that its scenarios hold
    try:
        return kind.from_dict(held)
    except InvalidInput as error:
        raise ListError(f"{path}: {error.message}", fix=error.fix) from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        said = f"{path} holds no {kind.__name__}: {error}."
        raise ListError(said, fix="Give a file that save() has written.") from None


def job_to_dict(job: Job, lists: Mapping[str, Any]) -> dict[str, Any]:
    """A job as JSON values; `lists` has its agents and scenarios as they are to be written."""
    if job.survey.is_mapped:
        raise SurveyError(
            "A job of Job.map is a text and a file of rows.", fix="Keep these two: there is nothing else to save."
        )
    _refuse_functions(job.agents)
    models = {} if not job.has_models else {"models": [model.to_dict() for model in job.models]}
    where = {"where": [each.source for each in job.conditions]} if job.conditions else {}
    return _plain({"survey": job.survey.to_dict(), **lists, **models, **where})


def save_job(job: Job, path: str | Path) -> None:
    """Write a job; a list of more than 1,000 rows goes into a `.jsonl` file beside it, as a stream."""
    path = _checked_path(path)
    lists = job.given_lists()
    study = job_to_dict(job, {name: _list_or_name(path, name, rows) for name, rows in lists.items()})
    with ExitStack() as replaced:  # nothing before all is written; then the study last
        _write(study, path, replaced)
        for name, rows in lists.items():
            if len(rows) > _MOST_ROWS:
                _write_rows(rows, _file_beside(path, name), replaced)


def job_from_dict(job: type[Job], data: Any, path: Path | None = None, allowed: frozenset[str] = frozenset()) -> Job:
    """Make the job that `job_to_dict` describes; `path` is the file that it was read from."""
    place = "The study" if path is None else str(path)
    held = as_mapping(_with_values(data), place, _BEGIN)
    parts = ("survey", *JOB_PARTS) if "survey" in held else (*SURVEY_PARTS, *JOB_PARTS)
    for part in held:
        if part not in parts and not str(part).startswith("edsl_"):
            raise SurveyError(f"{place} has a part {part!r}.", fix=nearest(str(part), parts))
    survey = held.get("survey", {part: value for part, value in held.items() if part in SURVEY_PARTS})
    made = job(_claimed(survey_in(place, as_mapping(survey, f"{place}, survey", _BEGIN)), path, allowed))
    try:
        return _with_lists(made, held, path, allowed)
    except (ListError, SurveyError) as error:
        raise type(error)(f"{place}: {error.message}", fix=error.fix) from None


def _with_lists(job: Job, held: dict[Any, Any], path: Path | None, allowed: frozenset[str]) -> Job:
    for name, kind in (("agents", AgentList), ("scenarios", ScenarioList)):
        if held.get(name) is not None:
            job = job.by(_list_from(kind, held[name], path, name))
    if held.get("models") is not None:
        job = job.by(ModelList(_models_from(held["models"], path, allowed)))
    for condition in _listed(held.get("where") or []):
        job = job.where(condition)
    return job


def load_job(job: type[Job], path: str | Path, allow: str | Iterable[str]) -> Job:
    path = _found_path(path)
    if _is_of_edsl(path) or _is_job_of_edsl(held := read_data(path)):
        return job.from_edsl(path, allow=allow)
    return job_from_dict(job, held, path, _names(allow))


def _is_of_edsl(path: Path) -> bool:
    """Whether a file is of a kind that only EDSL writes: `.ep`, and studies in `.jsonl`."""
    return path.suffix.lower() in (".ep", ".jsonl")


def _is_job_of_edsl(held: Any) -> bool:
    """Whether this is what EDSL's jobs or surveys write."""
    study = cast("dict[Any, Any]", held) if isinstance(held, dict) else {}
    return any(isinstance(each, dict) and "rule_collection" in each for each in (study, study.get("survey")))


def _names(allow: str | Iterable[str]) -> frozenset[str]:
    """The addresses, key variables and model files that a user allows."""
    return frozenset(name.rstrip("/") or name for name in ([allow] if isinstance(allow, str) else allow))


_BEGIN = 'Begin with "questions:" and a list of them.'


def _refuse_functions(held: Survey | AgentList | ScenarioList) -> None:
    """Agents that answer by a function have it in their list's settings; a survey looks at its questions itself."""
    if isinstance(held, AgentList) and any(entry.functions for entry in held.settings.entries):
        raise ListError(
            "Some of the agents have a function, which cannot be written.",
            fix="Save them without it, and give it in the program.",
        )


def _list_or_name(study: Path, name: str, rows: AgentList | ScenarioList) -> Any:
    """A list as the study holds it: its rows, or the name of the file that they go into."""
    if len(rows) <= _MOST_ROWS:
        return rows.to_dict()
    if isinstance(rows, AgentList) and rows.settings.to_row():
        raise ListError(
            f"{len(rows):,} agents with a codebook or a template are too many for one file.",
            fix="Save their traits as .csv or .jsonl, and give the codebook in the program.",
        )
    return _file_beside(study, name).name


def _file_beside(study: Path, name: str) -> Path:
    return study.with_name(f"{study.stem}.{name}.jsonl")


def _write_rows(rows: AgentList | ScenarioList, beside: Path, replaced: ExitStack) -> None:
    if _is_read_from(beside, rows):
        return
    with replaced.enter_context(_replacing(beside)).open("wb") as file:
        for row in rows.source.rows():
            file.write(row + b"\n")


def _is_read_from(beside: Path, rows: AgentList | ScenarioList) -> bool:
    """Whether this list is the one in the file beside the study. Then that stays as it is: written anew in another
    spelling, it would be a changed file to the list that reads it.
    """
    source = rows.source
    if not isinstance(source, JsonlSource) or beside.is_symlink() or not beside.is_file():
        return False
    return beside.samefile(source.path) and type(rows).from_file(beside).source.digest == source.digest


def _list_from(
    kind: type[AgentList | ScenarioList], held: Any, study: Path | None, name: str
) -> AgentList | ScenarioList:
    if not isinstance(held, str):
        key = "agent_list" if kind is AgentList else "scenarios"
        return kind.from_dict(cast("dict[str, Any]", held) if isinstance(held, dict) else {key: _listed(held)})
    if study is None:
        raise ListError(f"The {name} are in a file, {held!r}.", fix="Load the study from its own file: Job.load(path).")
    file = (study.parent / held).resolve()
    if not file.is_relative_to(study.parent.resolve()):
        raise ListError(f"The {name} are in {held!r}, outside the study's folder.", fix="Copy that file beside it.")
    return kind.from_file(file)


def _models_from(held: Any, study: Path | None, allowed: frozenset[str]) -> Iterator[Model]:
    for item in _listed(held):
        model = model_from_text(item, "models") if isinstance(item, str) else Model.from_dict(item)
        yield model if study is None else _claim(model, study, allowed)


def _claimed(survey: Survey, study: Path | None, allowed: frozenset[str]) -> Survey:
    if study is None or all(question.model is None for question in survey.questions):
        return survey
    return survey.with_questions(
        question if question.model is None else replace(question, model=_claim(question.model, study, allowed))
        for question in survey.questions
    )


def _claim(model: Model, study: Path, allowed: frozenset[str]) -> Model:
    """What a file says of addresses, keys and model files is asked only where the user allows it."""
    if not _REACHING.isdisjoint(model.parameters):
        model.origin = FromFile(str(study), allowed)
    return model


def _listed(held: Any) -> Iterable[Any]:
    return cast("list[Any]", held) if isinstance(held, list) else [held]


def _plain(held: dict[str, Any]) -> dict[str, Any]:
    """The same as JSON values, what JSON has not with a mark; `_with_values` reads it back."""
    return msgspec.json.decode(encode_value(held))


def _with_values(data: Any) -> Any:
    try:
        return decode_value(msgspec.json.encode(data))
    except TypeError:  # YAML knows names that are true, null or lists
        raise SurveyError("A name in the study is neither text nor a number.", fix="Put it in quotes.") from None


def _as_json(path: Path) -> Path:
    """EDSL's programs write save("pets") and load("pets")."""
    return path.with_name(f"{path.name}.json")


def _found_path(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix:
        return path
    others = (path.with_name(f"{path.name}{suffix}") for suffix in (".ep", ".json.gz"))
    return next((found for found in (_as_json(path), *others) if found.exists()), path)


def _checked_path(path: str | Path) -> Path:
    path = Path(path)
    if not path.suffix:
        path = _as_json(path)
    if path.suffix.lower() not in _FORMATS:
        raise SurveyError(f"{path} ends in {path.suffix!r}.", fix=f"Give it one of {', '.join(_FORMATS)}.")
    return path


def _write(data: dict[str, Any], path: Path, replaced: ExitStack) -> None:
    """Write what replaces `path` when `replaced` ends without an error."""
    if path.suffix.lower() == ".json":
        text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n"
    else:
        import yaml

        text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120)
    replaced.enter_context(_replacing(path)).write_text(text, "utf-8")


@contextmanager
def _replacing(path: Path) -> Generator[Path]:
    try:
        with replacing(path) as unfinished:
            yield unfinished
    except OptionError as error:
        raise SurveyError(error.message, fix=error.fix) from None
