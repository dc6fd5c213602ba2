"""The files that the fuzzer changes: kept ones of the first version, and some of this one that hold every table.

Covers: making them. Does not cover: changing them (benchmarks.mutants), or what must hold then (benchmarks.fuzz).
"""

import gzip
from pathlib import Path

from headrace import (
    Agent,
    AgentList,
    FileStore,
    Job,
    Model,
    QuestionFreeText,
    QuestionNumerical,
    Scenario,
    ScenarioList,
    Survey,
)

NEW = "new-"  # begins the names of files of this version
MOST_ASKED = 50  # interviews that a run of a base may ask; only the plan of a long file has more
_KEPT = Path(__file__).parents[1] / "tests" / "data" / "format_1"
_TOTALS = {
    "n": "count()", "mean": "mean(answer.rating)", "most": "max(agent.age)", "least": "min(answer.why)",
    "spread": "std(agent.age)", "many": "share(agent.age > 22)",
}  # fmt: skip


def bases(folder: Path) -> list[Path]:
    """All of them."""
    return [*kept_bases(folder), *made_bases(folder)]


def kept_bases(folder: Path) -> list[Path]:
    """Files of the first version, as they were kept, and of this one, by a run of the same jobs."""
    made: list[Path] = []
    for packed in sorted(_KEPT.glob("*.run.gz")):
        if packed.name.startswith("wide"):
            continue  # its 1,003 questions take most of the time, and have no code of their own
        old = folder / packed.name.removesuffix(".gz")
        old.write_bytes(gzip.decompress(packed.read_bytes()))
        made.append(old)
        if "engine" not in packed.name:
            new = folder / f"{NEW}{old.name}"
            Job.open(old).run(new, limit=7).close()
            made.append(new)
    return made


def made_bases(folder: Path) -> list[Path]:
    """Files with what the kept ones lack: totals in place of rows; conditions and codebooks; embedded files and blocks
    of rows.
    """
    return [
        file_without_rows(folder / f"{NEW}totals.run"),
        _with_conditions(folder / f"{NEW}where.run"),
        _long(folder / f"{NEW}long.run", folder),
    ]


def file_without_rows(path: Path) -> Path:
    """Bits and totals by group, and the failures of those whose prompt cannot be written."""
    survey = Survey([
        QuestionNumerical(question_name="rating", question_text="Rate it.", min_value=0, max_value=10),
        QuestionFreeText(question_name="why", question_text="You said {{ rating.answer }} in {{ agent.city }}. Why?"),
    ])  # fmt: skip
    people = [Agent({"age": 20 + i, **({} if i % 4 == 3 else {"city": f"c{i % 2}"})}, name=f"p{i}") for i in range(12)]
    job = survey.by(AgentList(people)).by(Model("test", canned_response={"rating": 7, "why": "So."}))
    job.run(path, keep="nothing", aggregate=_TOTALS, group_by="agent.city", limit=8, cache=False).close()
    return path


def _with_conditions(path: Path) -> Path:
    """Combinations left out, two codebooks and a template among the agents."""
    survey = Survey([QuestionFreeText(question_name="q", question_text="How is {{ scenario.city }}?")])
    people = [
        Agent({"age": 20 + i}, name=f"p{i}", codebook={"age": ("Age in years", "Years lived")[i % 2]}) for i in range(4)
    ]
    people.append(Agent({"age": 50}, name="p4", traits_presentation_template="I am {{ age }} years old."))
    cities = ScenarioList.from_list("city", ["Oslo", "Lima", "Rome"])
    job = survey.by(AgentList(people)).by(cities).by(Model("test", canned_response="Fine"))
    job.where("agent.age > 20 and scenario.city != 'Lima'").run(path, limit=6, cache=False).close()
    return path


def _long(path: Path, folder: Path) -> Path:
    """A sample of a plan so long that the file gets a table of blocks, which comes when it is opened once more; and the
    texts of two files that are not there any more.
    """
    notes = [folder / "a.txt", folder / "b.txt"]
    for number, note in enumerate(notes):
        note.write_text(f"What note {number} says. " * 40, "utf-8")
    question = QuestionFreeText(question_name="q", question_text="Sum up: {{ scenario.note.text }}")
    scenarios = ScenarioList([Scenario({"note": FileStore(note), "n": n}) for n, note in enumerate(notes)])
    job = question.by(scenarios).by(Model("test", canned_response="Short."))
    for sample in (60, 61):
        job.run(path, n=1_000_000, sample=sample, embed=True, cache=False).close()
    for note in notes:
        note.unlink()
    return path
