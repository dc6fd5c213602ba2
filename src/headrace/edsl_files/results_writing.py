"""Results as a file that EDSL 1.0.9 loads: `Results.load(path)` there. One interview at a time, whatever their number.

    {"data": [one object an interview, ...], "survey": {...}, "created_columns": [], ...}

The parts of an interview have the names that EDSL gives them (results.columns.question_parts). What all interviews
share is encoded once. Does not cover: the survey (survey_writing).
"""

from __future__ import annotations

import gzip
import json
import keyword
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from headrace.edsl_files.carried_over import CarriedOver
from headrace.edsl_files.survey_writing import marks, question_kind, survey_as_edsl
from headrace.errors import OptionError
from headrace.plain_files.replacing import replacing
from headrace.plan.product import Plan
from headrace.results.reading.file_view import SharedFile
from headrace.results.result import Result
from headrace.store.run_file.stored_job.stored_boxes import read_plan
from headrace.survey.files.file_store import FileStore
from headrace.survey.model import Model
from headrace.survey.survey import Survey
from headrace.survey.values import Fields

_LEVEL = 3  # of gzip: twice as fast as the usual 9, and a few percent larger
_SERVICES = {"deepinfra": "deep_infra", "openrouter": "open_router"}
_KNOWN_SERVICES = frozenset(
    {"anthropic", "deep_infra", "deepseek", "google", "groq", "mistral", "ollama", "open_router", "openai", "test",
     "together", "xai"}
)  # fmt: skip
_ELSEWHERE = "openai_compatible"  # what EDSL takes any name for
_GROUPS = {
    "raw_model_response": "raw_model_response",
    "generated_tokens": "generated_tokens",
}
_CACHED, _OPTIONS = "_cache_used", "_question_options"
_LEFT_OUT = "offloaded"  # what EDSL itself writes of a file's content in results


def _file_as_edsl(value: object) -> dict[str, Any]:
    """A file in a scenario as EDSL has it in results: without its content."""
    if not isinstance(value, FileStore):
        raise TypeError(f"{type(value).__name__} is no JSON")
    about = {"path": value.path, "suffix": value.suffix, "mime_type": value.mime_type, "binary": True}
    return {**about, "base64_string": _LEFT_OUT, "external_locations": {}, "extracted_text": None}


_json = json.JSONEncoder(default=_file_as_edsl).encode


def write_results(results: Iterable[Result], survey: Survey, files: Mapping[Path, SharedFile], path: Path) -> Path:
    """Write these interviews, which are read from these run files."""
    _check_suffix(path)
    notes = CarriedOver(str(path))
    writer = _ResultWriter(survey, files, notes)
    with replacing(path) as unfinished, _opened(unfinished, path) as file:
        file.write(b'{"data": [')
        for number, result in enumerate(results):
            file.write((", " if number else "").encode() + writer.row(result).encode())
        rest: dict[str, Any] = {"survey": survey_as_edsl(survey, notes), "created_columns": [], **marks("Results")}
        file.write(b"], " + _json(rest)[1:].encode())
    notes.warn()
    return path


def _check_suffix(path: Path) -> None:
    if not path.name.lower().endswith((".json", ".json.gz")):
        raise OptionError(f"{path.name} is no name of a file that EDSL loads.", fix="End it in .json.gz or .json.")


@contextmanager
def _opened(unfinished: Path, path: Path) -> Generator[IO[bytes]]:
    with unfinished.open("wb") as file:
        if path.suffix.lower() != ".gz":
            yield file
            return
        with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as zipped:
            yield cast("IO[bytes]", zipped)


class _ResultWriter:
    """Writes one interview after the other as JSON."""

    def __init__(self, survey: Survey, files: Mapping[Path, SharedFile], notes: CarriedOver) -> None:
        self._settings = {path: file.agent_settings for path, file in files.items()}
        self._plans = {path: _plan(file) for path, file in files.items()}
        self._notes = notes
        self._attributes = {question.question_name: _attributes(question) for question in survey}
        self._encoded_attributes = _json(self._attributes)
        self._vary = [name for name in self._attributes if _varies(survey, name)]  # whose options differ by interview
        self._models: dict[int, tuple[Model, str]] = {}  # by identity: a file has each of its models once

    def row(self, result: Result) -> str:
        parts = {
            "agent": _json(self._agent(result)),
            "scenario": self._scenario(result.scenario),
            "model": self._model(result.model),
            "iteration": str(result.iteration),
            "answer": _json(result.answer),
            **{name: _json(_without_none(result[group])) for group, name in _GROUPS.items()},
            "reasoning_summaries_dict": _json(result["reasoning_summary"]),
            "prompt": _json({name: {"text": text, "class_name": "Prompt"} for name, text in _prompts(result)}),
            "comments_dict": _json(_comments(result)),
            "validated_dict": _json(_validated(result)),
            "question_to_attributes": self._attributes_of(result),
            "cache_used_dict": _json({name.removesuffix(_CACHED): used for name, used in _cache_used(result)}),
            "indices": _json(self._indices(result)),
            "edsl_version": _json(marks("Result")["edsl_version"]),
            "edsl_class_name": '"Result"',
        }
        return "{" + ", ".join(f'"{name}": {value}' for name, value in parts.items()) + "}"

    def _indices(self, result: Result) -> dict[str, int] | None:
        """Where its agent, scenario and model stand in their lists, which keeps equal ones apart."""
        plan = self._plans[result.path]
        if result.ordinal >= plan.size:  # of a plan that has grown since
            return None
        return {axis: at for axis, at in plan.coordinates(result.ordinal)._asdict().items() if axis != "iteration"}

    def _scenario(self, fields: Fields) -> str:
        for name, value in fields.items():
            if isinstance(value, FileStore):
                self._notes.note(f"the content of files in the scenarios' field {name[:60]!r}, as EDSL does in results")
        return _json({**fields, **marks("Scenario")})

    def _attributes_of(self, result: Result) -> str:
        """The questions' texts, kinds and options, these in the order and words that the interview was shown."""
        if not self._vary:
            return self._encoded_attributes
        shown = cast("Mapping[str, Any]", result["question_options"])
        own = {name: {**self._attributes[name], "question_options": shown[f"{name}{_OPTIONS}"]} for name in self._vary}
        return _json({**self._attributes, **own})

    def _model(self, model: Model) -> str:
        if id(model) not in self._models:
            self._models[id(model)] = model, _json(_model(model, self._notes))
        return self._models[id(model)][1]

    def _agent(self, result: Result) -> dict[str, Any]:
        agent = result.agent
        held = self._settings[result.path].of({"agent_settings": agent.settings_number})
        parts = {
            "name": agent.name,
            "instruction": agent.instruction,
            "codebook": {self._trait_name(name): meaning for name, meaning in held.codebook.items()} or None,
            "traits_presentation_template": held.template,
        }
        traits = {self._trait_name(name): value for name, value in agent.traits.items()}
        return {
            "traits": traits,
            **{name: value for name, value in parts.items() if value is not None},
            **marks("Agent"),
        }

    def _trait_name(self, name: str) -> str:
        written = edsl_trait_name(name)
        if written != name:
            self._notes.note(f"the trait {name[:60]!r} is called {written[:60]!r}: EDSL takes no such name")
        return written


def edsl_trait_name(name: str) -> str:
    """A trait's name as EDSL takes it: other signs become underscores, as does what is missing to an identifier."""
    if name != "name" and name.isidentifier() and not keyword.iskeyword(name):
        return name
    plain = re.sub(r"\W", "_", name)
    if plain == "name" or keyword.iskeyword(plain):
        return f"{plain}_"
    return plain if plain.isidentifier() else f"_{plain}"


def _attributes(question: Any) -> dict[str, Any]:
    options = getattr(question, "question_options", None)
    listed = list(cast("list[Any]", options)) if isinstance(options, (list, tuple)) else options
    return {
        "question_text": question.question_text,
        "question_type": question_kind(question),
        "question_options": listed,
    }


def _varies(survey: Survey, name: str) -> bool:
    """Whether the options of a question are shuffled, or filled with data."""
    if name in survey.randomizing.questions:
        return True
    options = getattr(survey[name], "question_options", None)
    return "{{" in _json(options if isinstance(options, str) else list(cast("Iterable[Any]", options or ())))


def _model(model: Model, notes: CarriedOver) -> dict[str, Any]:
    service = _SERVICES.get(model.service_name, model.service_name)
    if service not in _KNOWN_SERVICES | {_ELSEWHERE}:
        notes.note(f"model {model.name!r}: its service {service!r}, which EDSL does not have, is {_ELSEWHERE!r}")
        service = _ELSEWHERE
    connection = {name: model.parameters[name] for name in ("base_url", "api_key_env") if name in model.parameters}
    hidden = {"base_url", "api_key_env", "api_key", "extra_headers", "extra_body", "path"} | model.functions.keys()
    kept = {name: value for name, value in model.parameters.items() if name not in hidden}
    held = {"model": model.name, "parameters": kept, "inference_service": service, **marks("LanguageModel")}
    return {**held, "connection": connection} if connection else held


def _prompts(result: Result) -> Iterator[tuple[str, str]]:
    return ((name, text) for name, text in cast("Mapping[str, Any]", result["prompt"]).items() if text is not None)


def _cache_used(result: Result) -> Iterator[tuple[str, bool]]:
    return ((name, used) for name, used in cast("Mapping[str, Any]", result["cache_used"]).items() if used is not None)


def _comments(result: Result) -> Fields:
    """What the model said beside its answers; of a question that failed, why, as EDSL has it there. Every question has
    one, be it None: EDSL knows a column by its being there.
    """
    failed = {f"{failure.question}_comment": failure.message for failure in result.failures}
    return {**result["comment"], **failed, **_without_none(result["comment"])}


def _validated(result: Result) -> Fields:
    """Whether each question has a valid answer; EDSL says so of those that were asked."""
    skipped = {f"{name}_validated" for name in result.skipped}
    return {name: value for name, value in _without_none(result["validated"]).items() if name not in skipped}


def _plan(file: SharedFile) -> Plan:
    with file.reader.snapshot() as connection:
        return read_plan(connection, file.reader.path)


def _without_none(parts: Fields) -> Fields:
    """The parts of questions that were asked."""
    return {name: value for name, value in parts.items() if value is not None}
