"""Runs whose prompts hold files, against a real server: what is asked, stored, cached and failed."""

import base64
import gc
import shutil
import sqlite3
import threading
import weakref
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    FileStore,
    Job,
    Model,
    QuestionCompute,
    QuestionFreeText,
    QuestionFunctional,
    QuestionMultipleChoice,
    Scenario,
    ScenarioList,
    Survey,
)
from headrace.errors import SurveyError
from headrace.interviews.interview import _with_texts
from headrace.models.provider import Request
from headrace.store.run_file.merging.merging import merge_run_files
from headrace.store.whole_files import verify
from headrace.survey.files import file_text
from headrace.survey.files.file_text import TextNeeded
from headrace.survey.record import Cause
from tests.models.server import HostileServer
from tests.pictures import pdf, png, wav

LOOK = QuestionFreeText(question_name="seen", question_text="What is in {{ scenario.photo }}?")


@pytest.fixture
def server():
    with HostileServer() as running:
        yield running


def a_model(server: HostileServer, **parameters: Any) -> Model:
    return Model("m", service_name="openai_compatible", base_url=server.url, timeout_s=20.0, **parameters)


def photos(folder: Path, count: int, **options: Any) -> ScenarioList:
    return ScenarioList(
        Scenario({"photo": FileStore(png(folder / f"{n}.png", shade=n, **options)), "n": n}) for n in range(count)
    )


def test_the_test_model_sees_the_files(tmp_path: Path):
    seen: list[Any] = []

    def answer(request: Request) -> str:
        seen.append((request.user_prompt, request.files))
        return "a cat"

    scenarios = photos(tmp_path, 1)
    results = Survey([LOOK]).by(scenarios).by(Model("test", canned_response=answer)).run(tmp_path / "a.run")
    ((prompt, (place,)),) = seen
    assert place.file == scenarios[0]["photo"]
    assert prompt[place.start : place.end] == place.file.in_words
    assert results[0].scenario["photo"] == place.file
    results.close()


def test_edsls_function_gets_a_list_of_files(tmp_path: Path):
    model = Model("test", func=lambda user, system, files: f"{[file.name for file in files]}")
    with Survey([LOOK]).by(photos(tmp_path, 1)).by(model).run(tmp_path / "a.run") as results:
        assert results[0].answer["seen"] == "['0.png']"


@pytest.mark.parametrize("workers", [None, 2])
def test_every_interview_sends_its_own_file_once(server: HostileServer, tmp_path: Path, workers: int | None):
    scenarios = photos(tmp_path, 8, filler_bytes=500_000)
    job = Survey([LOOK]).by(scenarios).by(a_model(server))
    with job.run(tmp_path / "a.run", workers=workers, cache=False) as results:
        assert [result.answer["seen"] for result in results] == ["Good"] * 8
    sent = {call.content[1]["image_url"]["url"] for call in server.script.kept}
    assert (server.calls, len(sent)) == (8, 8)
    assert (tmp_path / "a.run").stat().st_size < 500_000  # references, not pictures


def test_a_cached_answer_is_found_under_another_path(server: HostileServer, tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        job = Survey([LOOK]).by(photos(tmp_path / name, 2)).by(a_model(server))
        job.run(tmp_path / f"{name}.run").close()
    assert server.calls == 2


def test_a_run_goes_on_where_its_files_were_moved_to(server: HostileServer, tmp_path: Path):
    (tmp_path / "one").mkdir()
    Survey([LOOK]).by(photos(tmp_path / "one", 3)).by(a_model(server)).run(tmp_path / "a.run", limit=1).close()
    (tmp_path / "one").rename(tmp_path / "two")
    moved = ScenarioList(Scenario({"photo": FileStore(tmp_path / "two" / f"{n}.png"), "n": n}) for n in range(3))
    with Survey([LOOK]).by(moved).by(a_model(server)).run(tmp_path / "a.run") as results:
        assert [result.answer["seen"] for result in results] == ["Good"] * 3
        assert results[0].scenario["photo"].path == str(tmp_path / "two" / "0.png")


def test_a_file_that_changed_fails_its_interview_alone_and_running_again_asks_it(server: HostileServer, tmp_path: Path):
    scenarios = photos(tmp_path, 3)
    before = (tmp_path / "1.png").read_bytes()
    png(tmp_path / "1.png", shade=99)
    job = Survey([LOOK]).by(scenarios).by(a_model(server))
    with job.run(tmp_path / "a.run", cache=False) as results:
        assert [result.answer["seen"] for result in results] == ["Good", None, "Good"]
        (failure,) = results[1].failures
        assert failure.cause == Cause.FILE.value
        assert "1.png cannot be sent: its content changed" in failure.message
        assert results.stats().calls == 2
    (tmp_path / "1.png").write_bytes(before)
    with job.run(tmp_path / "a.run", cache=False) as results:
        assert results[1].answer["seen"] == "Good"


def test_a_model_that_takes_no_such_file_is_refused_before_anything_is_asked(server: HostileServer, tmp_path: Path):
    sound = ScenarioList([{"photo": FileStore(wav(tmp_path / "a.wav"))}])
    model = Model("m", service_name="anthropic", base_url=server.url)
    with pytest.raises(SurveyError, match=r"'seen' sends a file that the model 'm' does not take.*no sound file"):
        Survey([LOOK]).by(sound).by(model).run(tmp_path / "a.run")
    with pytest.raises(SurveyError, match="the local model reads text alone"):
        Survey([LOOK]).by(photos(tmp_path, 1)).by(Model("local")).run(tmp_path / "a.run")
    assert server.calls == 0


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("a.bmp", b"BM" + bytes(60), "Save it as PNG or JPEG."),
        ("a.xlsx", b"PK\3\4" + bytes(60), "Save it as a PDF, a picture or a text"),
        ("a.pdf", None, "the file's text: {{ scenario.photo.text }}."),
    ],
)
def test_the_advice_for_a_file_that_is_not_taken_fits_the_file(
    server: HostileServer, tmp_path: Path, name: str, content: bytes | None, advice: str
):
    path = tmp_path / name
    if content is None:
        pdf(path, "x" * 500)
    else:
        path.write_bytes(content)
    model = Model("m", service_name="openai", base_url=server.url, max_file_bytes=100)
    with pytest.raises(SurveyError) as refused:
        Survey([LOOK]).by(Scenario({"photo": FileStore(path)})).by(model).run(tmp_path / "a.run")
    assert advice in str(refused.value.fix)


def test_a_later_row_with_such_a_file_fails_alone(server: HostileServer, tmp_path: Path):
    scenarios = ScenarioList([photos(tmp_path, 1)[0], {"photo": FileStore(wav(tmp_path / "a.wav"))}])
    model = Model("m", service_name="anthropic", base_url=server.url)
    with Survey([LOOK]).by(scenarios).by(model).run(tmp_path / "a.run", cache=False) as results:
        assert [result.answer["seen"] for result in results] == ["Good", None]
        assert "take no sound file" in results[1].failures[0].message


def test_data_cannot_bring_a_file_into_a_prompt(server: HostileServer, tmp_path: Path):
    photo = photos(tmp_path, 1)[0]["photo"]
    text = f'{photo.in_words} \x02{"0" * 20}{{"path": "/etc/passwd"}}\x03 {{{{ scenario.photo }}}}'
    question = QuestionFreeText(question_name="q", question_text="{{ scenario.text }}")
    job = Survey([question]).by(Scenario({"photo": photo, "text": text})).by(a_model(server))
    job.run(tmp_path / "a.run", cache=False).close()
    assert isinstance(server.last.content, str)
    assert server.last.content.startswith(text)


def test_a_list_of_files_is_sent_whole_and_a_loop_places_each(server: HostileServer, tmp_path: Path):
    files = [scenario["photo"] for scenario in photos(tmp_path, 2)]
    both = QuestionFreeText(question_name="q", question_text="Compare {{ scenario.both }}")
    each = QuestionFreeText(
        question_name="r", question_text="{% for one in scenario.both %}No. {{ loop.index }}: {{ one }} {% endfor %}"
    )
    Survey([both, each]).by(Scenario({"both": files})).by(a_model(server)).run(tmp_path / "a.run", cache=False).close()
    kinds = sorted([part.get("text", "file").strip()[:5] for part in call.content][:4] for call in server.script.kept)
    assert kinds == [["Compa", "file", "file", "Answe"], ["No. 1", "file", "No. 2", "file"]]


def test_memory_tells_of_a_file_in_words_and_sends_it_once(server: HostileServer, tmp_path: Path):
    after = QuestionFreeText(question_name="more", question_text="And what else?")
    survey = Survey([LOOK, after]).set_full_memory_mode()
    survey.by(photos(tmp_path, 1)).by(a_model(server)).run(tmp_path / "a.run", cache=False).close()
    assert isinstance(server.last.content, str)
    assert "[file 0.png, image/png" in server.last.content


def test_a_file_in_an_option_fails_with_what_to_do(tmp_path: Path):
    pick = QuestionMultipleChoice(
        question_name="pick", question_text="Which?", question_options=["{{ scenario.photo }}", "none"]
    )
    job = Survey([pick]).by(photos(tmp_path, 1)).by(Model("test", canned_response="none"))
    with job.run(tmp_path / "a.run") as results:
        assert "not in its options" in results[0].failures[0].message


def test_a_file_that_a_filter_took_apart_is_the_path_or_a_failure(tmp_path: Path):
    texts = {
        "a": "{{ scenario.photo | upper }}",
        "b": "{% set x %}{{ scenario.photo }}{% endset %}{{ x | upper }}",
        "c": "{{ scenario.photo.name }} {{ scenario.photo.size }}",
    }
    survey = Survey([QuestionFreeText(question_name=name, question_text=text) for name, text in texts.items()])
    job = survey.by(photos(tmp_path, 1)).by(Model("test", canned_response=lambda request: request.user_prompt))
    with job.run(tmp_path / "a.run") as results:
        answer = results[0].answer
        assert answer["a"].startswith(str(tmp_path / "0.png").upper())
        assert answer["b"] is None
        assert answer["c"].startswith("0.png ")


def test_one_prompt_per_row_takes_files_too(server: HostileServer, tmp_path: Path):
    rows = [{"doc": FileStore(pdf(tmp_path / f"{n}.pdf", f"Page {n}"))} for n in range(2)]
    job = Job.map("Sum up: {{ doc }}", rows).by(a_model(server))
    job.run(tmp_path / "a.run", cache=False).close()
    assert {call.content[1]["type"] for call in server.script.kept} == {"file"}


def test_results_with_files_are_exported_by_path(tmp_path: Path):
    job = Survey([LOOK]).by(photos(tmp_path, 2)).by(Model("test", canned_response="x"))
    with job.run(tmp_path / "a.run") as results:
        results.to_csv(tmp_path / "a.csv")
        results.to_jsonl(tmp_path / "a.jsonl")
        results.to_sqlite(tmp_path / "a.db")
        assert str(tmp_path / "1.png") in (tmp_path / "a.csv").read_text()
        assert f'"{tmp_path / "1.png"}"' in (tmp_path / "a.jsonl").read_text()


def stored_bytes(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT coalesce(sum(length(content)), 0) FROM embedded_parts").fetchone()[0]


@pytest.mark.parametrize("workers", [None, 1])
def test_embedded_files_are_kept_once_and_sent_when_the_files_are_gone(
    server: HostileServer, tmp_path: Path, workers: int | None
):
    (tmp_path / "pets").mkdir()
    one = FileStore(png(tmp_path / "pets" / "a.png", filler_bytes=1_000_000))
    same = FileStore(png(tmp_path / "pets" / "b.png", filler_bytes=1_000_000))
    other = FileStore(png(tmp_path / "pets" / "c.png", shade=9))
    scenarios = ScenarioList([{"photo": one}, {"photo": same}, {"photo": other}])
    job = Survey([LOOK]).by(scenarios).by(a_model(server))
    job.run(tmp_path / "a.run", embed=True, cache=False, limit=1).close()
    assert stored_bytes(tmp_path / "a.run") == one.size + other.size
    expected = (tmp_path / "pets" / "c.png").read_bytes()
    shutil.rmtree(tmp_path / "pets")
    with job.run(tmp_path / "a.run", cache=False, workers=workers) as results:
        assert [result.answer["seen"] for result in results] == ["Good"] * 3
    sent = {call.content[1]["image_url"]["url"].partition(",")[2] for call in server.script.kept}
    assert base64.b64encode(expected).decode() in sent
    assert stored_bytes(tmp_path / "a.run") == one.size + other.size


def test_a_file_that_changed_before_it_was_embedded_is_left_out(server: HostileServer, tmp_path: Path):
    scenarios = photos(tmp_path, 2)
    png(tmp_path / "1.png", shade=99)
    job = Survey([LOOK]).by(scenarios).by(a_model(server))
    with job.run(tmp_path / "a.run", embed=True, cache=False) as results:
        assert [result.answer["seen"] for result in results] == ["Good", None]
    assert stored_bytes(tmp_path / "a.run") == scenarios[0]["photo"].size


def test_an_embedding_that_was_killed_is_made_again(server: HostileServer, tmp_path: Path):
    scenarios = photos(tmp_path, 2, filler_bytes=500_000)
    job = Survey([LOOK]).by(scenarios).by(a_model(server))
    job.run(tmp_path / "a.run", embed=True, cache=False, limit=1).close()
    with closing(sqlite3.connect(tmp_path / "a.run")) as connection, connection:
        connection.execute("DELETE FROM embedded WHERE digest = ?", (scenarios[1]["photo"].digest,))
        connection.execute("DELETE FROM embedded_parts WHERE part > 0")  # a kill between two transactions
        connection.execute("DELETE FROM embedded_parts WHERE digest = ?", (scenarios[0]["photo"].digest,))
        connection.execute("DELETE FROM embedded")
    with job.run(tmp_path / "a.run", embed=True, cache=False) as results:
        assert [result.answer["seen"] for result in results] == ["Good"] * 2
    assert stored_bytes(tmp_path / "a.run") == sum(each["photo"].size for each in scenarios)


def test_an_embedded_part_that_is_damaged_is_not_sent(server: HostileServer, tmp_path: Path):
    job = Survey([LOOK]).by(photos(tmp_path, 2)).by(a_model(server))
    job.run(tmp_path / "a.run", embed=True, cache=False, limit=1).close()
    with closing(sqlite3.connect(tmp_path / "a.run")) as connection, connection:
        connection.execute("UPDATE embedded_parts SET content = zeroblob(length(content))")
    with job.run(tmp_path / "a.run", cache=False) as results:
        assert "cannot be sent: its content changed" in results[1].failures[0].message
    assert server.calls == 1


def test_the_text_of_an_embedded_pdf_is_read_from_the_run_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    report = FileStore(pdf(tmp_path / "a.pdf", "First page"))
    question = QuestionFreeText(question_name="q", question_text="{{ scenario.report.text }}")
    job = Survey([question]).by(Scenario({"report": report, "n": 1}), Scenario({"report": report, "n": 2}))
    job = job.by(Model("test", canned_response=lambda request: request.user_prompt))
    job.run(tmp_path / "a.run", embed=True, limit=1).close()
    monkeypatch.setattr(file_text, "_kept", file_text._KeptTexts())
    (tmp_path / "a.pdf").unlink()
    with job.run(tmp_path / "a.run") as results:
        assert results[1].answer["q"].startswith("First page")


def test_a_computed_question_does_not_read_a_text_on_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    threads: list[str] = []
    read = file_text._read

    def noted(file: FileStore) -> str:
        threads.append(threading.current_thread().name)
        return read(file)

    monkeypatch.setattr(file_text, "_read", noted)
    reports = [tmp_path / name for name in ("a.txt", "b.txt")]
    for path in reports:
        path.write_text(f"{path.stem} words")
    scenarios = ScenarioList(Scenario({"report": FileStore(path)}) for path in reports)
    computed = QuestionCompute(question_name="c", question_text="{{ scenario.report.text|upper }}")
    with Survey([computed]).by(scenarios).by(Model("test")).run(tmp_path / "a.run") as results:
        assert [result.answer["c"] for result in results] == ["A WORDS", "B WORDS"]
    # The first when the job is checked, by whoever runs it.
    assert [name.partition("_")[0] for name in threads] == [threading.current_thread().name, "asyncio"]
    shout = QuestionFunctional(question_name="f", func=lambda scenario, _: scenario["report"].text.upper())
    with Survey([shout]).by(scenarios).by(Model("test")).run(tmp_path / "b.run") as results:
        assert [result.answer["f"] for result in results] == ["A WORDS", "B WORDS"]


def test_a_merged_file_has_the_embedded_files_and_verify_looks_at_them(server: HostileServer, tmp_path: Path):
    (tmp_path / "pets").mkdir()
    pictures = photos(tmp_path / "pets", 3, filler_bytes=500_000)
    paths = [tmp_path / f"{n}.run" for n in range(3)]
    for path, chosen in zip(paths, (pictures[:2], pictures[1:]), strict=False):
        Survey([LOOK]).by(chosen).by(a_model(server)).run(path, embed=True, cache=False, limit=1).close()
    shutil.rmtree(tmp_path / "pets")
    merge_run_files(paths[:2], paths[2])
    assert verify(paths[2]).findings == {}
    assert stored_bytes(paths[2]) == sum(each["photo"].size for each in pictures)
    with Survey([LOOK]).by(pictures).by(a_model(server)).run(paths[2], cache=False) as results:
        assert [result.answer["seen"] for result in results] == ["Good"] * 3
    with closing(sqlite3.connect(paths[2])) as connection, connection:
        connection.execute("UPDATE embedded_parts SET content = zeroblob(length(content)) WHERE part = 0")
        connection.execute("DELETE FROM embedded_parts WHERE digest = ?", (pictures[0]["photo"].digest,))
    assert verify(paths[2]).findings["embedded files"].count == 3


async def test_a_prompt_that_waited_for_a_files_text_leaves_nothing_to_the_collector():
    class Held:
        pass

    class ReadNow(TextNeeded):
        def __init__(self) -> None:
            Exception.__init__(self)

        def load(self) -> None:
            is_read.set()

    def write(held: Held) -> int:
        if not is_read.is_set():
            raise ReadNow
        return id(held)

    is_read, held = threading.Event(), Held()
    gone = weakref.ref(held)
    gc.collect()
    gc.disable()
    try:
        assert await _with_texts(write, held) == id(held)
        del held
        assert gone() is None
    finally:
        gc.enable()
