"""Results as a sequence of interviews, and the views made of them."""

import gc
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from headrace.errors import InvalidInput, NotARunFile, RunFileDamaged, RunFileError, RunFileTooNew
from headrace.results.results import Results
from headrace.store.connections import open_writer
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from tests.results import files


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return files.city_copy(tmp_path / "city.run")


@pytest.fixture
def holed(tmp_path: Path) -> Path:
    """Only every third interview of the first twenty, and none behind."""
    return files.write(
        tmp_path / "holed.run",
        files.job(files.survey("q"), [Agent({"n": n}) for n in range(100)]),
        lambda n: [n],
        range(1, 20, 3),
    )


def ordinals(results: Results) -> list[int]:
    return [result.ordinal for result in results]


def test_results_are_a_sequence_of_interviews_in_plan_order(path: Path) -> None:
    with Results.open(str(path)) as results:
        assert len(results) == 40
        assert ordinals(results) == list(range(40))
        assert results[0].ordinal == 0
        assert results[-1].ordinal == 39
        assert ordinals(results[10:20]) == list(range(10, 20))
        assert ordinals(results[-3:]) == [37, 38, 39]
        assert ordinals(results[-300:2]) == [0, 1]
        assert ordinals(results[35:100]) == [35, 36, 37, 38, 39]
        assert ordinals(results[5:2]) == []
        assert next(iter(results)).answer == {"mood": "Good", "rating": 0}


def test_an_index_outside_the_results_is_an_index_error(path: Path) -> None:
    with Results.open(path) as results:
        for index in (40, -41, 10**9):
            with pytest.raises(IndexError):
                results[index]


def test_slicing_in_steps_is_refused_with_a_way_out(path: Path) -> None:
    with Results.open(path) as results, pytest.raises(InvalidInput, match=r"list\(results\)"):
        results[::2]


def test_indices_count_interviews_that_are_there_not_places_in_the_plan(holed: Path) -> None:
    with Results.open(holed) as results:
        assert len(results) == 7
        assert ordinals(results) == [1, 4, 7, 10, 13, 16, 19]
        assert [results[i].ordinal for i in range(7)] == [1, 4, 7, 10, 13, 16, 19]
        assert results[-1].ordinal == 19
        assert ordinals(results[2:4]) == [7, 10]
        assert ordinals(results[7:]) == []


def test_windows_of_windows_count_within_the_window(path: Path) -> None:
    with Results.open(path) as results:
        assert ordinals(results[10:20][5:]) == [15, 16, 17, 18, 19]
        assert ordinals(results[10:20][2:4]) == [12, 13]
        assert ordinals(results[10:][3:100].head(2)) == [13, 14]
        assert len(results[10:20]) == 10
        assert len(results[35:100]) == 5
        assert results[10:20][-1].ordinal == 19


def test_a_filter_behind_a_window_looks_only_into_the_window(path: Path) -> None:
    with Results.open(path) as results:
        inside = results[10:20].filter("interview.ordinal >= 17")
        assert ordinals(inside) == [17, 18, 19]
        assert len(inside) == 3
        assert ordinals(results.filter("interview.ordinal >= 17")[:2]) == [17, 18]
        assert ordinals(inside[1:].filter("interview.ordinal != 18")) == [19]


def test_a_sort_behind_a_window_sorts_the_window(path: Path) -> None:
    with Results.open(path) as results:
        assert ordinals(results[10:13].sort_by("interview.ordinal", reverse=True)) == [12, 11, 10]
        assert ordinals(results.sort_by("interview.ordinal", reverse=True)[10:13]) == [29, 28, 27]
        assert results.sort_by("interview.ordinal", reverse=True)[-1].ordinal == 0


def test_views_leave_what_they_were_made_of_as_it_was(path: Path) -> None:
    with Results.open(path) as results:
        results.select("agent.age").filter("rating > 5").sort_by("rating").head(1)
        assert len(results) == 40
        assert len(results.columns) > 1


def test_the_contract_line_runs_in_either_order(path: Path) -> None:
    with Results.open(path) as results:
        asked = results.select("agent.age", "answer.*").filter("answer.rating > 5 and agent.age < 30")
        dicts = asked.sort_by("agent.age").to_dicts(remove_prefix=False)
        assert list(dicts[0]) == ["agent.age", "answer.mood", "answer.rating"]
        assert [row["agent.age"] for row in dicts] == sorted(row["agent.age"] for row in dicts)
        assert all(row["answer.rating"] > 5 and row["agent.age"] < 30 for row in dicts)
        filtered_first = results.filter("answer.rating > 5 and agent.age < 30").select("agent.age", "answer.*")
        assert filtered_first.sort_by("agent.age").to_dicts(remove_prefix=False) == dicts


def test_all_columns_are_named_in_a_stable_order(path: Path) -> None:
    with Results.open(path) as results:
        assert results.columns == [
            "answer.mood",
            "answer.rating",
            "agent.agent_name",
            "agent.age",
            "scenario.city",
            "model.model",
            "iteration.iteration",
            "interview.ordinal",
            "interview.status",
        ]
        assert results.select("*").columns == results.columns
        assert results.select("agent.*", "age", "rating").columns == [
            "agent.agent_name",
            "agent.age",
            "answer.rating",
        ]


def test_an_unknown_column_is_refused_with_the_nearest(path: Path) -> None:
    with Results.open(path) as results:
        with pytest.raises(InvalidInput, match=r"Did you mean 'answer.rating'"):
            results.select("answer.ratting")
        with pytest.raises(InvalidInput, match=r"Did you mean 'rating'"):
            results.filter("ratin > 5")
        with pytest.raises(InvalidInput, match=r"Did you mean 'agent.age'"):
            results.sort_by("agent.agee")
        with pytest.raises(InvalidInput, match="called like"):
            results.select("agents.*")


def test_a_bare_name_that_could_be_two_columns_is_refused(tmp_path: Path) -> None:
    path = files.write(tmp_path / "a.run", files.job(files.survey("age"), [Agent({"age": 3})]), lambda _: ["x"])
    with Results.open(path) as results, pytest.raises(InvalidInput, match=r"answer.age or agent.age"):
        results.filter("age == 3")


def test_failures_are_listed_lazily_with_their_causes(path: Path) -> None:
    with Results.open(path) as results:
        failed = list(results.failed())
        assert [failure.ordinal for failure in failed] == [3, 10, 17, 24, 31, 38]
        assert failed[0] == (3, "mood", "invalid answer", "question 0 < 3")
        assert [failure.ordinal for failure in results[5:20].failed()] == [10, 17]
        shown = results[5:20].failed()
        assert str(shown).splitlines()[1] == "interview 17, mood: invalid answer: question 0 < 3"
        assert shown.to_dicts()[0]["message"] == "question 0 < 3"
        assert shown.to_pandas()["ordinal"].tolist() == [10, 17]
        assert len(list(shown)) == 2  # what was shown is not consumed
        backwards = results.sort_by("interview.ordinal", reverse=True)
        assert [failure.ordinal for failure in backwards.failed()] == [38, 31, 24, 17, 10, 3]


def test_more_failures_than_a_page_are_all_listed(tmp_path: Path) -> None:
    agents = [Agent({"n": n}) for n in range(300)]
    path = files.write(
        tmp_path / "f.run", files.job(files.survey("a", "b"), agents), lambda _: [files.MISSING, files.MISSING]
    )
    with Results.open(path) as results:
        listed = list(results.failed())
        assert [(f.ordinal, f.question) for f in listed] == [(n, q) for n in range(300) for q in "ab"]


def test_stats_tell_what_the_file_took(path: Path) -> None:
    connection = open_writer(path)
    connection.execute("INSERT INTO runs VALUES(1, 100.0, 130.0, 0, 5000, 'done', '[]')")
    connection.execute("INSERT INTO runs VALUES(2, 200.0, NULL, 7, NULL, NULL, NULL)")
    connection.close()
    with Results.open(path) as results:
        stats = results.head(3).stats()
        assert (stats.interviews, stats.failed, stats.calls, stats.reused) == (40, 6, 80, 7)
        assert (stats.input_tokens, stats.output_tokens, stats.tokens) == (400, 120, 520)
        assert (stats.seconds, stats.peak_memory, stats.cost) == (30.0, 5000, 0.0)


def test_results_of_an_empty_run_are_empty(tmp_path: Path) -> None:
    with Results.open(files.city(tmp_path / "e.run", ordinals=[])) as results:
        assert len(results) == 0
        assert list(results) == list(results.failed()) == results.to_dicts() == []
        assert list(results.filter("rating > 3 and agent.age < 5").sort_by("mood")) == []
        assert results.stats().interviews == 0
        with pytest.raises(IndexError):
            results[0]


def test_the_repr_is_one_line_with_the_path_and_counts(path: Path) -> None:
    with Results.open(path) as results:
        assert repr(results) == f"Results({str(path)!r}: a live view of the whole file, 40 interviews, 6 failed)"
        assert ": 3 of the 40 interviews of a live view" in repr(results.head(3))


def test_the_notebook_shows_a_page_and_escapes_it(tmp_path: Path) -> None:
    agents = [Agent({"<b>trait</b>": f"<script>alert({n})</script>"}) for n in range(30)]
    path = files.write(tmp_path / "h.run", files.job(files.survey("q"), agents), lambda _: ["a & <i>b</i>"])
    with Results.open(path) as results:
        shown = results._repr_html_()
        assert "<script>" not in shown
        assert "<i>" not in shown
        assert "&lt;script&gt;" in shown
        assert shown.count("<tr>") == 11
        assert "and 20 more" in shown


def test_closed_results_open_the_file_again_when_used(path: Path) -> None:
    results = Results.open(path)
    first = results[0]
    results.close()
    assert first.prompts["mood"] == "Please answer 0."
    assert len(results) == 40
    results.close()


def test_dropped_results_let_go_of_the_file(path: Path) -> None:
    results = Results.open(path)
    assert len(results.filter("rating > 5").sort_by("rating")) > 0
    iterator = iter(results.sort_by("rating"))
    next(iterator)
    del results, iterator
    gc.collect()
    held = [entry.readlink() for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink() and entry.exists()]
    assert path not in held


def test_what_is_not_a_run_file_is_refused_on_opening(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="no run file"):
        Results.open(tmp_path / "nothing.run")
    (tmp_path / "text.run").write_text("hello " * 100)
    with pytest.raises(NotARunFile):
        Results.open(tmp_path / "text.run")


def test_a_newer_file_is_refused_on_opening(path: Path) -> None:
    connection = open_writer(path)
    connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(RunFileTooNew):
        Results.open(path)


def test_a_damaged_file_says_so_when_it_is_read(tmp_path: Path) -> None:
    path = files.city(tmp_path / "city.run", people=500)
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xa5" * (len(content) - 8192))
    with pytest.raises(RunFileDamaged, match="damaged"), Results.open(path) as results:
        list(results)


def test_a_function_of_a_model_is_told_by_its_name(tmp_path: Path) -> None:
    of = files.job(files.survey("q"), models=[Model("test", canned_response=files.city_answers)])
    with Results.open(files.write(tmp_path / "f.run", of, lambda _: ["x"])) as results:
        told = results.select("model.canned_response").to_dicts(remove_prefix=False)[0]["model.canned_response"]
        assert "city_answers" in told
        assert len(results.filter("contains(model.canned_response, 'city_answers')")) == 1


def test_a_file_whose_plan_is_not_written_yet_says_so(path: Path) -> None:
    connection = open_writer(path)
    connection.execute("DELETE FROM boxes")
    connection.close()
    with pytest.raises(RunFileError, match="still being set up"):
        Results.open(path)


FORKING = """
import os, sys
from headrace.results.results import Results

with Results.open(sys.argv[1]) as results:
    assert len(results) == 40
    child = os.fork()
    right = len(results) == 40 and results[7].answer["rating"] == 1
    if child == 0:
        os._exit(0 if right else 1)
    assert right and os.waitpid(child, 0)[1] == 0
"""


def test_results_work_in_a_forked_child(path: Path) -> None:
    # In a process of its own: forking this one, with the threads of other tests' libraries, is not what is tested.
    subprocess.run(
        [sys.executable, "-c", FORKING, str(path)], check=True, env={"PYTHONPATH": os.pathsep.join(sys.path)}
    )


def test_iterating_many_interviews_takes_little_memory(tmp_path: Path) -> None:
    agents = (Agent({"age": n % 80, "name": f"person {n}"}) for n in range(10_000))
    path = files.write(tmp_path / "many.run", files.job(files.survey("a", "b"), agents), lambda n: [n, "text " * 20])
    with Results.open(path) as results:
        len(results)
        tracemalloc.start()
        try:
            for view in (results, results.sort_by("b", "agent.age"), results.filter("len(answer.b) > 3")):
                assert sum(result.answer["a"] >= 0 for result in view) == 10_000
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 2_000_000
