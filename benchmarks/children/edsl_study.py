"""A study written and read by the real EDSL: `edsl_study write DIRECTORY [AGENTS]`, `read FILE TO`, `load FILE`.

Started by EDSL's own Python. `write` saves a survey with rules, memory and instructions, a survey of every kind of
question, lists, models, a job and its results, each in the forms that EDSL has; the tests' data files are made by it:

    PEERS/edsl-1.0.9/bin/python -m benchmarks.children.edsl_study write tests/edsl_files/data

`read FILE TO` loads results and writes a line of JSON for each; `load FILE` prints what holding them takes.
"""

import base64
import contextlib
import gzip
import io
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import edsl
from edsl.instructions import ChangeInstruction, Instruction
from edsl.questions.register_questions_meta import RegisterQuestionsMeta

from benchmarks.processes import peak_resident_bytes, print_figures

ANSWERS = {
    "mood": "Good\nThe sun is out.",
    "rating": "7",
    "why": "Because – ça va, 東京.",
    "sure": "3",
    "pets": '["Cat", "Dog"]',
}
# Left out of the survey of every kind: what Headrace does not ask, and code.
OTHER_KINDS = {
    "diagram", "distribution", "edsl_object", "file_upload", "functional", "image_generation", "interview",
    "survey_message", "thinking", "url",
}  # fmt: skip
QUIET = {"disable_remote_inference": True, "disable_remote_cache": True, "progress_bar": False}


def survey() -> Any:
    mood = edsl.QuestionMultipleChoice(
        question_name="mood",
        question_text="How do you feel about {{ scenario.city }}?",
        question_options=["Good", "Bad"],
    )
    rating = edsl.QuestionNumerical(
        question_name="rating", question_text="You said {{ mood.answer }}. Rate it.", min_value=0, max_value=10
    )
    why = edsl.QuestionFreeText(question_name="why", question_text="Why?")
    sure = edsl.QuestionLinearScale(
        question_name="sure",
        question_text="How sure are you?",
        question_options=[1, 2, 3],
        option_labels={1: "not", 3: "very"},
    )
    pets = edsl.QuestionList(question_name="pets", question_text="Name your pets.", max_list_items=3)
    brief, dropped = Instruction(name="brief", text="Be brief."), ChangeInstruction(keep=[], drop=["brief"])
    made = edsl.Survey([mood, brief, rating, dropped, why, sure, pets], questions_to_randomize=["mood"])
    made = made.add_skip_rule("why", "{{ mood.answer }} == 'Bad'")
    made = made.add_rule("rating", "{{ rating.answer }} > 8", "sure")
    made = made.add_rule("rating", "{{ rating.answer }} > 9", "pets")
    made = made.add_stop_rule("sure", "{{ sure.answer }} == 1")
    return made.add_targeted_memory("why", "mood").add_memory_collection("pets", ["mood", "rating"])


def agents(count: int) -> Any:
    everyone = [
        edsl.Agent(
            name=f"p{number}",
            traits={"age": 20 + number, "home": "Zürich", "likes": ["tea", "Go"], "score": number / 8},
            codebook={"age": "Age in years"},
            instruction="Answer as yourself.",
        )
        for number in range(count)
    ]
    return edsl.AgentList(everyone)


def scenarios() -> Any:
    return edsl.ScenarioList([edsl.Scenario({"city": "Oslo", "size": 1}), edsl.Scenario({"city": "Lima", "size": 2.5})])


def scenarios_with_files() -> Any:
    """Two scenarios with a text file and a picture of one dot; paths in them are relative, as users write them."""
    dot = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        Path("note.txt").write_text("Ça va.", "utf-8")
        Path("dot.png").write_bytes(dot)
        held = [{"note": edsl.FileStore("note.txt"), "photo": edsl.FileStore("dot.png"), "n": n} for n in (1, 2)]
        made = edsl.ScenarioList([edsl.Scenario(fields) for fields in held])
        os.chdir(here)
        return edsl.ScenarioList.from_dict(made.to_dict())


def models() -> Any:
    test = edsl.Model("test", canned_response=ANSWERS, temperature=0.25)
    test.rpm, test.tpm = 10**9, 10**12
    return edsl.ModelList([test])


def every_kind() -> Any:
    kinds = RegisterQuestionsMeta.question_types_to_classes()
    examples = []
    for kind in sorted(kinds.keys() - OTHER_KINDS):
        example = kinds[kind].example()
        example.question_name = f"a_{kind}"
        examples.append(example)
    return edsl.Survey(examples)


def write(directory: Path, count: int = 2) -> None:
    """Save everything; with `count` agents."""
    directory.mkdir(parents=True, exist_ok=True)
    for old in [*directory.glob("*.ep"), *directory.glob("*.json"), *directory.glob("*.gz")]:
        old.unlink()
    job = survey().by(agents(count)).by(scenarios()).by(models())
    held = {"survey": survey(), "agents": agents(count), "scenarios": scenarios(), "models": models(), "job": job}
    with contextlib.redirect_stdout(io.StringIO()):
        for name, each in held.items():
            each.save(str(directory / f"{name}.json.gz"))
            each.save(str(directory / f"{name}.ep"))
        write_files(directory)
        every_kind().save(str(directory / "every_kind.json.gz"))
        functional = edsl.QuestionFunctional.example()
        edsl.Survey([functional]).save(str(directory / "functional.json"), compress=False)
        results = job.run(n=2, cache=edsl.Cache(), **QUIET)
        results.save(str(directory / "results.json.gz"))
        results.save(str(directory / "results.ep"))
    lines = "".join(f"{line}\n" for line in values(results))
    (directory / "values.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))


def write_files(directory: Path) -> None:
    made = scenarios_with_files()
    made.save(str(directory / "files.json.gz"))
    made.save(str(directory / "files.ep"))


def values(results: Any) -> list[str]:
    """What both sides must agree about, as JSON, one result a line, in the order of their contents."""
    return sorted(json.dumps(_of_one(result), sort_keys=True, ensure_ascii=False) for result in results)


def _of_one(result: Any) -> dict[str, Any]:
    held = result.data
    raw = held["raw_model_response"]
    return {
        "agent": {"name": held["agent"].name, "traits": dict(held["agent"].traits)},
        "scenario": dict(held["scenario"]),
        "model": [held["model"].model, held["model"].parameters.get("temperature")],
        "iteration": held["iteration"],
        "answer": held["answer"],
        "comment": {name: text for name, text in held["comments_dict"].items() if text},
        "prompt": {name: prompt.text for name, prompt in held["prompt"].items()},
        "tokens": {name: raw[name] for name in sorted(raw) if name.endswith(("_input_tokens", "_output_tokens"))},
        "generated": held["generated_tokens"],
    }


def read(path: Path, target: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        results = edsl.Results.load(str(path))
    target.write_text("".join(f"{line}\n" for line in values(results)), "utf-8")


def load(path: Path) -> None:
    began_bytes, began_s = peak_resident_bytes(), time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        results = edsl.Results.load(str(path))
    cpu_s = time.process_time() - began_s
    print_figures(found=len(results), began_bytes=began_bytes, peak_bytes=peak_resident_bytes(), cpu_s=cpu_s)


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    if what == "write":
        write(Path(where), *map(int, rest))
    elif what == "read":
        read(Path(where), *map(Path, rest))
    else:
        load(Path(where))
