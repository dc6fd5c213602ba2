"""Files in which something has changed since they were written, with every page of SQLite's still in order."""

import resource
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from headrace import AgentList, Job, Model, Results, ScenarioList, Survey
from headrace.errors import RunFileDamaged, RunFileError
from headrace.interviews.steering.run_file_status import RunFileStatus
from headrace.limits import Budgets
from headrace.store.run_file.checksums import has_detail, has_values, interview_checksum
from headrace.store.run_file.rows import DetailPacker
from headrace.store.run_file.stored_job.kept_budgets import KeptBudgets, kept_budgets
from headrace.store.whole_files import verify
from headrace.survey.questions.free_text import QuestionFreeText
from tests.results.files import city, city_answers
from tests.store.damage import CHANGED_BUDGETS, CHANGED_COUNTS, CHANGED_PLANS, CHANGED_ROWS, CHANGED_SETTINGS
from tests.store.kept_files import failing_job, plain_job, unpacked


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return city(tmp_path_factory.mktemp("finished") / "city.run", people=200)


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(finished, tmp_path / "copy.run"))


def edit(path: Path, *statements: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        for statement in statements:
            connection.execute(statement)


def held(path: Path, sql: str) -> list[tuple]:
    with closing(apsw.Connection(str(path))) as connection:
        return connection.execute(sql).fetchall()


SQL_VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8")),
    st.binary(),
)


@given(st.lists(SQL_VALUES, max_size=6), st.binary())
def test_what_sqlite_gives_back_has_the_checksum_of_what_it_was_given(values: list, detail: bytes) -> None:
    checksum = interview_checksum(values, detail)
    with closing(apsw.Connection(":memory:")) as connection:
        names = ", ".join(f"a{place}" for place in range(len(values)))
        connection.execute(f"CREATE TABLE t(checksum, detail{', ' + names if names else ''})")
        connection.execute(f"INSERT INTO t VALUES(?, ?{', ?' * len(values)})", (checksum, detail, *values))
        ((stored, packed, *read),) = connection.execute("SELECT * FROM t")
    assert has_values(stored, tuple(read))
    assert has_detail(stored, packed)
    assert not has_values(stored, (*read, 0))
    assert not has_detail(stored, packed + b"x")


@pytest.mark.parametrize("change", CHANGED_ROWS)
def test_a_changed_row_is_never_read_as_if_it_were_right(copy: Path, change: str) -> None:
    edit(copy, change)
    with Results.open(copy) as results:
        read: list[Callable[[], object]] = [
            lambda: [result.answer for result in results],
            results.to_dicts,
            lambda: results.select("answer.mood", "agent.age", "scenario.city").to_dicts(),
            lambda: results.filter("agent.age > 0 or answer.rating == 7").to_dicts(),
            lambda: results.sort_by("answer.rating").to_dicts(),
            lambda: results[9],
        ]
        for way in read:
            with pytest.raises(RunFileDamaged, match=r"nterview \d+ "):
                way()
        if "scenarios" not in change and "agents" not in change:
            others = results.filter("interview.ordinal != 9")
            assert [result.answer["rating"] for result in others] == [
                city_answers(ordinal)[1] for ordinal in range(400) if ordinal != 9
            ]


@pytest.mark.parametrize("lost", ["ordinal = 9", "ordinal >= 300", "ordinal % 2", "1"])
def test_rows_that_are_missing_are_missed(copy: Path, lost: str) -> None:
    edit(copy, f"DELETE FROM interviews WHERE {lost}")
    missing = 400 - held(copy, "SELECT count(*) FROM interviews")[0][0]
    with Results.open(copy) as results:
        for way in (
            lambda: list(results),
            lambda: results.filter("answer.rating > 3").to_dicts(),
            lambda: results.sort_by("answer.mood").to_dicts(),
            lambda: results.sql("select count(*) from self").first(),
            lambda: results.tally("answer.mood").to_dicts(),
            lambda: results.group_by("answer.mood").agg(n="count()").to_dicts(),
        ):
            with pytest.raises(RunFileDamaged, match=f"{missing} are missing"):
                way()
    with pytest.raises(RunFileDamaged, match=f"{missing} are missing"):
        Job.open(copy).run(copy)


@pytest.mark.parametrize("change", CHANGED_COUNTS)
def test_changed_counts_are_not_shown(copy: Path, change: str) -> None:
    edit(copy, change)
    with Results.open(copy) as results, pytest.raises(RunFileDamaged, match="counted"):
        results.stats()
    with pytest.raises(RunFileDamaged, match=r"counted|too many"):
        Job.open(copy).run(copy)


@pytest.mark.parametrize("change", CHANGED_PLANS)
def test_a_changed_plan_is_refused(copy: Path, change: str) -> None:
    edit(copy, change)
    for way in (lambda: list(Results.open(copy)), lambda: Job.open(copy)):
        with pytest.raises(RunFileDamaged, match="not as they were written"):
            way()


def described_job() -> Job:
    people = AgentList.from_list("age", range(6), codebook={"age": "Age in years"})
    return Survey([QuestionFreeText(question_name="q", question_text="Who?")]).by(people).by(Model("test"))


@pytest.mark.parametrize("change", CHANGED_SETTINGS)
def test_changed_settings_of_agents_are_found_and_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "x.run"
    described_job().run(path, limit=2).close()
    found = verify(path)
    assert (found.findings, found.unchecked) == ({}, 0)
    edit(path, change)
    assert "plan" in verify(path).findings
    for way in (lambda: list(Results.open(path)), lambda: Job.open(path), lambda: described_job().run(path)):
        with pytest.raises(RunFileDamaged, match="templates are not as they were written"):
            way()


@pytest.mark.parametrize("change", CHANGED_BUDGETS)
def test_changed_budgets_keep_no_answer_from_being_read_and_no_run_uses_them(tmp_path: Path, change: str) -> None:
    path = tmp_path / "x.run"
    described_job().run(path, limit=2, max_tokens_total=100_000, concurrency=7).close()
    edit(path, change)
    assert list(verify(path).findings) == ["budgets"]
    with Results.open(path) as results:
        assert len(list(results)) == 2
    assert RunFileStatus.at(path).budgets_trouble
    for some in ({}, {"max_cost": 5.0}, {"max_tokens_total": "none"}):
        for job in (Job.open(path), described_job()):
            with pytest.raises(RunFileDamaged, match=r"max_cost= and max_tokens_total=, .* go back"):
                job.run(path, **some)
    described_job().run(path, limit=3, max_cost="none", max_tokens_total=90_000).close()
    assert kept_budgets(path) == KeptBudgets(Budgets(max_tokens_total=90_000))
    assert verify(path).findings == {}
    described_job().run(path).close()


def test_budgets_that_an_older_headrace_has_changed_are_unchecked_until_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "x.run"
    described_job().run(path, limit=2, max_tokens_total=100_000).close()
    # What it writes: its run, and other budgets beside a checksum that it does not know of.
    edit(
        path,
        "UPDATE meta SET value = 90000 WHERE key = 'budget.max_tokens_total'",
        "INSERT INTO runs(started_at, ended_at, reused, outcome) VALUES(1.0, 2.0, 0, 'stopped')",
    )
    found = verify(path)
    assert (found.findings, found.unchecked) == ({}, 1)
    described_job().run(path, limit=3).close()
    found = verify(path)
    assert (found.findings, found.unchecked) == ({}, 0)
    assert kept_budgets(path) == KeptBudgets(Budgets(max_tokens_total=90_000))
    edit(path, "DELETE FROM runs")  # a diary, without which the budgets are as they were
    assert verify(path).findings == {}


def test_budgets_and_settings_that_a_run_changes_fit_their_checksums(tmp_path: Path) -> None:
    path = tmp_path / "x.run"
    described_job().run(path, limit=1, max_tokens_total=100_000).close()
    described_job().run(path, limit=2, max_tokens_total="none", max_cost=5.0).close()
    assert verify(path).findings == {}
    people = AgentList.from_list("age", range(9), codebook={"age": "Age in years"})
    asked = Survey([QuestionFreeText(question_name="q", question_text="Who?")])
    asked.by(people).by(Model("test")).run(path, extend=True).close()
    found = verify(path)
    assert (found.findings, found.unchecked) == ({}, 0)


def test_a_file_written_before_settings_and_budgets_had_checksums_opens_and_has_them_after_its_next_run(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.run"
    described_job().run(path, limit=2, max_tokens_total=100_000).close()
    edit(path, "DELETE FROM meta WHERE key GLOB 'check.*'")
    found = verify(path)
    assert (found.findings, found.unchecked) == ({}, 2)
    Job.open(path).run(path, limit=3).close()
    found = verify(path)
    assert (found.findings, found.unchecked) == ({}, 0)


def test_an_entry_of_the_diary_of_runs_that_cannot_be_read_is_found(copy: Path) -> None:
    edit(copy, "INSERT INTO runs(started_at, reused, outcome) VALUES(1.5, 'many', 'complete')")
    assert list(verify(copy).findings) == ["runs"]


def test_a_detail_of_another_interview_is_noticed(copy: Path) -> None:
    edit(copy, "UPDATE details SET detail = (SELECT detail FROM details WHERE ordinal = 3) WHERE ordinal = 4")
    with Results.open(copy) as results:
        assert results[3].prompts
        with pytest.raises(RunFileDamaged, match="interview 4"):
            results[4].prompts  # noqa: B018


def test_a_changed_answer_in_flight_is_refused(tmp_path: Path) -> None:
    path = unpacked("pending", tmp_path)
    job = Job.open(path)
    job.run(path, limit=1).close()  # from here on it has checksums
    edit(path, "UPDATE pending SET checksum = 0")
    with pytest.raises(RunFileDamaged, match="interview 1 to question 0"):
        job.run(path)


def test_an_older_file_is_checked_from_its_next_run_on(tmp_path: Path) -> None:
    path = unpacked("plain", tmp_path)
    plain_job().run(path).close()
    ordinals = held(path, "SELECT ordinal, checksum IS NULL FROM interviews")
    assert [bool(is_unchecked) for _, is_unchecked in ordinals] == [ordinal < 8 for ordinal, _ in ordinals]
    edit(path, "UPDATE interviews SET a1 = 6 WHERE ordinal = 11")
    with Results.open(path) as results, pytest.raises(RunFileDamaged, match="Interview 11 "):
        list(results)
    failing_job().run(unpacked("failing", tmp_path), retry_failed=True).close()
    assert held(tmp_path / "failing.run", "SELECT count(*) FROM interviews WHERE checksum IS NULL") == [(0,)]


# --- bombs


def memory_used(function: Callable[[], object]) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    function()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


@pytest.mark.parametrize("size", [1_500_000_000, 70_000_000])
def test_a_detail_that_unpacks_to_gigabytes_is_refused(tmp_path: Path, size: int) -> None:
    path = unpacked("plain", tmp_path)
    ((dictionary,),) = held(path, "SELECT value FROM meta WHERE key = 'dictionary'")
    raw = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    writing = zstandard.ZstdCompressor(dict_data=raw).compressobj(size=size)
    block = bytes(10_000_000)
    bomb = b"".join([*(writing.compress(block) for _ in range(size // len(block))), writing.flush()])
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE details SET detail = ?", (bomb,))

    def read() -> None:
        with Results.open(path) as results, pytest.raises(RunFileDamaged, match="interview 0"):
            results[0].prompts  # noqa: B018

    assert memory_used(read) < 50_000_000


def test_a_detail_whose_answers_are_lists_is_refused() -> None:
    packer = DetailPacker(b"a dictionary of this survey")
    bomb = msgspec.msgpack.encode(["", 0.0, [[0, 0, [None] * 20_000_000]]])
    packed = packer.compress(bomb)
    del bomb

    def unpack() -> None:
        with pytest.raises(msgspec.ValidationError, match="a list"):
            packer.unpack(packed)

    assert memory_used(unpack) < 60_000_000


PLANS = ["1,6,100000000000,1", "1,100000000000,2,1", "1,6,2,100000000000", "1,-6,2,1", "1,6,2", "1,6,2,1,1", "x", ""]


@pytest.mark.parametrize("high", PLANS)
def test_a_plan_that_is_not_that_of_its_lists_is_refused(tmp_path: Path, high: str) -> None:
    path = unpacked("plain", tmp_path)
    edit(path, f"UPDATE boxes SET high = '{high}'")
    for way in (lambda: Job.open(path).run(path), lambda: plain_job().run(path)):
        with pytest.raises(RunFileDamaged, match="plan"):
            way()


def test_a_plan_too_large_to_keep_track_of_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    path = unpacked("plain", tmp_path)
    edit(path, "UPDATE boxes SET high = '100000000000,6,2,1'")

    def run() -> None:
        with pytest.raises(RunFileError, match=r"1,200,000,000,000 interviews.*memory="):
            Job.open(path).run(path, memory="+200MB")

    assert memory_used(run) < 50_000_000
    asked = Survey([QuestionFreeText(question_name="q", question_text="Who?")]).by(Model("test"))
    scenarios, sampled = (asked.by(ScenarioList.from_list("c", range(count))) for count in (1_000, 8))
    for job, interviews, sample in ((scenarios, 10**12, None), (sampled, 8 * 10**9, 10**9)):
        with pytest.raises(RunFileError, match=rf"{interviews:,} interviews.*memory="):
            job.run(tmp_path / "new.run", n=10**9, sample=sample, memory="+200MB")
    assert not (tmp_path / "new.run").exists()


@pytest.mark.parametrize("forged", ["a0 = 'other'", "checksum = 5", "checksum = 'x'", "status = 7"])
def test_a_run_that_goes_on_in_a_file_with_damaged_rows_says_so_first(tmp_path, caplog, forged):
    job, path = plain_job(), tmp_path / "x.run"
    job.run(path, limit=3).close()
    job.run(path, limit=4).close()
    assert caplog.records == []
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(f"UPDATE interviews SET {forged} WHERE ordinal = 2")
    job.run(path).close()
    (told,) = caplog.records
    assert "1 of the 4 finished interviews that were looked at cannot be read, the first is 2" in told.getMessage()


def test_the_checksum_of_a_large_text_is_the_same_in_pieces():
    for text in ("x" * 300_000, "ü" * 300_000, "x" * 64_000 * 5, "short"):
        values = (7, 0, 3, 4, 0, 0, text, None, "y" * 400_000, 1.5, None)
        whole = interview_checksum(values, b"detail")
        assert interview_checksum(values, b"detail", is_large=True) == whole
        assert has_values(whole, values)
