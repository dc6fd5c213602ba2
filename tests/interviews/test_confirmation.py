"""A run file's models and budgets are claims: what a resume contacts, reads and uses is what this user confirmed."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import AgentList, Engine, Job, Model, QuestionFreeText, Results, Survey
from headrace.errors import HeadraceError, ListError, NotConfirmed, OptionError
from headrace.interviews.permissions import Permissions
from headrace.limits import RunOptions
from headrace.memory.budget import memory_limits
from headrace.models.contacts import contacts_of
from headrace.models.http_client.address_file import AddressFile
from headrace.store.confirmations import read_confirmed
from headrace.store.run_file.stored_job.kept_budgets import kept_budgets
from tests.models.server import HostileServer
from tests.store.forging import fitted

SECRET = "a-victim's-secret-0123456789"  # must not be sent
VARIABLE = "AWS_SECRET_ACCESS_KEY"


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server


def a_job(server: HostileServer, people: int = 4, **parameters: Any) -> Job:
    asked = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ agent.n }}?")])
    model = Model("m", base_url=server.url, service_name="openai_compatible", **parameters)
    return asked.by(AgentList.from_list("n", range(people))).by(model)


class Elsewhere:
    """Makes run files as another user would, who has another data directory and another secret."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._home = home
        self._monkeypatch = monkeypatch

    def run(self, job: Job, path: Path, **settings: Any) -> Path:
        with self._monkeypatch.context() as there:
            there.setenv("HEADRACE_HOME", str(self._home))
            there.setenv(VARIABLE, "the-attacker's-own-0123456789")
            job.run(path, **settings)
        return path


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    monkeypatch.setenv(VARIABLE, SECRET)
    return Elsewhere(tmp_path / "elsewhere", monkeypatch)


def sent(server: HostileServer) -> str | None:
    return server.last.headers.get("authorization")


def test_a_file_from_elsewhere_contacts_nobody_and_reads_no_key_unasked(
    server: HostileServer, elsewhere: Elsewhere, tmp_path: Path
):
    path = elsewhere.run(a_job(server, api_key_env=VARIABLE), tmp_path / "evil.run", limit=1)
    before, content = server.calls, path.read_bytes()
    assert len(Results.open(path)) == 1
    with pytest.raises(NotConfirmed, match=VARIABLE) as refused:
        Job.open(path).run(path)
    assert refused.value.allow == [server.url, VARIABLE]
    assert f"Job.open({str(path)!r}, allow=[{server.url!r}, '{VARIABLE}'])" in str(refused.value)
    with pytest.raises(NotConfirmed):
        Job.open(path).run(tmp_path / "other.run")
    with pytest.raises(NotConfirmed):
        next(Job.open(path).stream(path))
    with pytest.raises(OptionError):
        Job.open(path, allow=[3])  # pyright: ignore[reportArgumentType]
    assert (server.calls, path.read_bytes() == content) == (before, True)


def test_the_question_names_the_budgets_that_a_file_claims(server: HostileServer, elsewhere: Elsewhere, tmp_path: Path):
    price = {"input": 1.5, "output": 2.5}
    path = elsewhere.run(
        a_job(server, price=price),
        tmp_path / "a.run",
        limit=1,
        max_tokens_total=90_000,
        memory="95%",
        concurrency=5_000,
    )
    with pytest.raises(NotConfirmed) as refused:
        Job.open(path).run(path)
    claimed = "4 interviews, no limit of cost, at most 90,000 tokens, concurrency 5,000, memory 95%"
    assert f"A run of it has {claimed}, prices of m at $1.5 in, $2.5 out" in str(refused.value)


def test_an_address_alone_does_not_allow_a_key_that_is_not_its_own(
    server: HostileServer, elsewhere: Elsewhere, tmp_path: Path
):
    path = elsewhere.run(a_job(server, api_key_env=VARIABLE), tmp_path / "evil.run", limit=1)
    before = server.calls
    for allow in (server.url, [server.url], [VARIABLE], ["http://127.0.0.1/v1", VARIABLE]):
        with pytest.raises(NotConfirmed):
            Job.open(path, allow=allow).run(path)
    assert server.calls == before
    Job.open(path, allow=[server.url + "/", VARIABLE]).run(path, limit=2, cache=False)
    assert (server.calls, sent(server)) == (before + 1, f"Bearer {SECRET}")
    Job.open(path).run(path)  # confirmed once is confirmed for this plan
    assert len(Results.open(path)) == 4


def test_a_question_s_own_model_in_a_file_from_elsewhere_is_a_claim_too(
    server: HostileServer, elsewhere: Elsewhere, tmp_path: Path
):
    own = Model("m", base_url=server.url, service_name="openai_compatible", api_key_env=VARIABLE)
    asked = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ agent.n }}?", model=own)])
    people = AgentList.from_list("n", range(4))
    path = elsewhere.run(asked.by(people).by(Model("test")), tmp_path / "evil.run", limit=1)
    before = server.calls
    with pytest.raises(NotConfirmed, match=VARIABLE) as refused:
        Job.open(path).run(path)
    assert refused.value.allow == [server.url, VARIABLE]
    with pytest.raises(NotConfirmed):
        Job.open(path).survey.by(people).by(Model("test")).run(tmp_path / "other.run")
    assert server.calls == before
    Job.open(path, allow=[server.url, VARIABLE]).run(path, cache=False)
    assert (server.calls, sent(server)) == (before + 3, f"Bearer {SECRET}")


def test_a_confirmation_holds_for_its_plan_address_and_key_only(
    server: HostileServer, elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    a_job(server).run(tmp_path / "mine.run", limit=1)
    mailed = elsewhere.run(a_job(server, api_key_env=VARIABLE), tmp_path / "evil.run", limit=1)
    with pytest.raises(NotConfirmed, match=VARIABLE):  # the same plan and address, and a key that was never confirmed
        Job.open(mailed).run(mailed)
    other = elsewhere.run(a_job(server, people=5), tmp_path / "other.run", limit=1)
    with pytest.raises(NotConfirmed):
        Job.open(other).run(other)
    Job.open(tmp_path / "mine.run").run(tmp_path / "mine.run")


def test_what_the_user_ran_from_a_program_is_never_asked_for_also_after_a_kill(server: HostileServer, tmp_path: Path):
    path = tmp_path / "a.run"
    pid = os.fork()
    if pid == 0:
        try:
            a_job(server, people=2000).run(path, on_result=lambda r: os._exit(9) if r.ordinal > 10 else None)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert Job.open(path).run(path).stats().interviews == 2000


def test_more_interviews_or_looser_budgets_than_were_confirmed_are_asked_for_again(
    server: HostileServer, tmp_path: Path
):
    price = {"input": 1.0, "output": 1.0}
    path = tmp_path / "a.run"
    a_job(server, price=price).run(path, limit=1, max_cost=1.0, max_tokens_total=10_000)
    before = server.calls
    for change in (  # a limit of cost is worth what its prices are
        "DELETE FROM meta WHERE key = 'budget.max_cost'",
        "UPDATE meta SET value = 1000000 WHERE key = 'budget.max_tokens_total'",
        "UPDATE boxes SET high = '1000,4,1,1'",
        """UPDATE models SET model = replace(model, '"output":1.0', '"output":0.0')""",
    ):
        came_back = tmp_path / "back.run"
        came_back.write_bytes(path.read_bytes())
        with sqlite3.connect(came_back) as raw:
            raw.execute(change)
        raw.close()
        fitted(came_back)
        with pytest.raises(NotConfirmed, match="changed since"):
            Job.open(came_back).run(came_back)
    assert server.calls == before
    Job.open(path).run(path, max_cost=2.0)  # given by the user: no claim


def a_limited_run(server: HostileServer, path: Path, *changes: str) -> Job:
    """The job of a program that ran it with limits, into a file that has been changed since."""
    job = a_job(server, price={"input": 1.0, "output": 1.0})
    job.run(path, limit=1, max_cost=5.0, max_tokens_total=10_000).close()
    with sqlite3.connect(path) as raw:
        for change in changes:
            raw.execute(change)
    raw.close()
    fitted(path)
    return job


NO_COST = "DELETE FROM meta WHERE key = 'budget.max_cost'"
MORE_COST = "UPDATE meta SET value = 500.0 WHERE key = 'budget.max_cost'"
MORE_TOKENS = "UPDATE meta SET value = 1000000 WHERE key = 'budget.max_tokens_total'"


@pytest.mark.parametrize(
    ("changes", "told", "given"),
    [
        ([NO_COST], ["no limit of cost where you confirmed at most $5.00", 'max_cost="none"'], {"max_cost": "none"}),
        ([MORE_COST], ["at most $500.00 where you confirmed at most $5.00", "max_cost=500.0"], {"max_cost": 5.0}),
        (
            [NO_COST, MORE_TOKENS],
            [
                "at most 1,000,000 tokens where you confirmed at most 10,000 tokens",
                'max_cost="none", max_tokens_total=1000000',
            ],
            {"max_cost": 5.0, "max_tokens_total": 20_000},
        ),
    ],
)
def test_a_changed_file_lifts_no_limit_that_a_program_has_set(
    server: HostileServer, tmp_path: Path, changes: list[str], told: list[str], given: dict[str, Any]
):
    path = tmp_path / "a.run"
    job = a_limited_run(server, path, *changes)
    plan, content, before = job.identity().digest, path.read_bytes(), server.calls
    confirmed = read_confirmed(plan)
    for _ in range(2):  # refusing confirms nothing
        with pytest.raises(NotConfirmed) as refused:
            job.run(path)
        assert [words for words in told if words not in str(refused.value)] == []
        assert "--max-" in refused.value.at_command
    with pytest.raises(NotConfirmed):
        Job.open(path, allow=server.url).run(path)  # that allows an address, and no limit
    assert (server.calls, path.read_bytes() == content) == (before, True)
    assert read_confirmed(plan) == confirmed
    job.run(path, limit=2, cache=False, **given).close()  # the user's own word
    job.run(path, cache=False).close()
    assert server.calls == before + 3


def test_a_plan_that_extends_a_changed_file_is_held_to_the_limits_of_that_file(server: HostileServer, tmp_path: Path):
    path = tmp_path / "a.run"
    a_limited_run(server, path, NO_COST)
    more = a_job(server, people=6, price={"input": 1.0, "output": 1.0})
    with pytest.raises(NotConfirmed, match="no limit of cost where you confirmed"):
        more.run(path, extend=True)
    more.run(path, extend=True, max_cost=5.0)


def test_a_file_with_tighter_limits_and_one_that_is_new_are_run_as_they_are(
    server: HostileServer, elsewhere: Elsewhere, tmp_path: Path
):
    price = {"input": 1.0, "output": 1.0}
    path = tmp_path / "a.run"
    job = a_limited_run(server, path, "UPDATE meta SET value = 4.0 WHERE key = 'budget.max_cost'")
    mailed = elsewhere.run(a_job(server, people=5, price=price), tmp_path / "mailed.run", limit=1, max_cost=3.0)
    ran = [
        job.run(path),
        job.run(tmp_path / "new.run"),
        job.run(path, fresh=True),
        a_job(server, people=5, price=price).run(mailed),  # a limit, where the program has none
    ]
    assert [each.stats().interviews for each in ran] == [len(job), len(job), len(job), 5]


def test_what_was_confirmed_at_the_question_of_resume_holds(server: HostileServer, tmp_path: Path):
    path = tmp_path / "a.run"
    job = a_limited_run(server, path, NO_COST)
    permissions = Permissions.of(Job.open(path), path, RunOptions())
    with pytest.raises(NotConfirmed, match=r"allow=\[.*\]\), and run it with max_cost=\"none\""):
        permissions.check()
    Job.open(path, allow=server.url).run(path, limit=2, max_cost="none").close()
    job.run(path)


def test_the_default_address_and_key_of_a_service_are_claims_too():
    job = Job.map("{{ x }}", [{"x": 1}]).by(Model("gpt-4o"))
    for model in job.models:
        (contact,) = contacts_of(model)
        assert (contact.address, contact.key) == ("https://api.openai.com/v1", "OPENAI_API_KEY")
        assert contact.has_usual_key
        assert contact.to_allow == (contact.address,)


@pytest.mark.parametrize(
    ("model", "allow"),
    [
        (Model("a", base_url=["http://x/v1", "http://y/v1/"]), ["http://x/v1", "http://y/v1"]),
        (Model("gpt-4o", base_url="https://evil.example/v1", api_key_env="OPENAI_API_KEY"),
         ["https://evil.example/v1", "OPENAI_API_KEY"]),
        (Model("gpt-4o", api_key_env="GITHUB_TOKEN"), ["https://api.openai.com/v1", "GITHUB_TOKEN"]),
        (Model("claude-x", base_url="https://evil.example/v1"), ["https://evil.example/v1"]),
        (Model("gpt-4o", base_url="https://[fe80::1%25.openai.com]/v1", api_key_env="OPENAI_API_KEY"),
         ["https://[fe80::1%25.openai.com]/v1", "OPENAI_API_KEY"]),
        (Model("x", service_name="ollama"), ["http://localhost:11434/v1"]),
        (Model("local", path="/etc/passwd"), ["/etc/passwd"]),
        (Model("a", base_url="@/etc/../etc/passwd"), ["@/etc/passwd"]),
        (Model("gpt-4o", base_url="@/etc/passwd"), ["@/etc/passwd"]),
        (Model("gpt-4o", base_url="@/etc/passwd", api_key_env="OPENAI_API_KEY"), ["@/etc/passwd", "OPENAI_API_KEY"]),
        (Model("local"), []),
        (Model("test"), []),
    ],
)  # fmt: skip
def test_what_each_kind_of_model_has_to_be_allowed(model: Model, allow: list[str]):
    found = [name for contact in contacts_of(model) for name in contact.to_allow]
    assert list(dict.fromkeys(found)) == allow


def test_a_model_file_that_a_run_file_names_is_not_opened_unasked(tmp_path: Path, headrace_home: Path):
    path = tmp_path / "a.run"
    Job.map("{{ x }}", [{"x": 1}]).by(Model("test")).run(path)
    with sqlite3.connect(path) as raw:
        row = '{"name":"local","service":"local","parameters":{"path":["/etc/hostname"]}}'
        raw.execute("UPDATE models SET name = 'local', service = 'local', model = ?", (row,))
    raw.close()
    fitted(path)
    with pytest.raises(NotConfirmed, match="the model file '/etc/hostname'"):
        Job.open(path).run(path)
    with pytest.raises(HeadraceError) as other:
        Job.open(path, allow="/etc/hostname").run(path)
    assert not isinstance(other.value, NotConfirmed)  # now it was looked at


def test_an_address_file_that_a_run_file_names_is_not_read_unasked(
    server: HostileServer, elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked = Survey([QuestionFreeText(question_name="q", question_text="Who is {{ agent.n }}?")])
    job = asked.by(AgentList.from_list("n", range(6))).by(Model("m", base_url="@endpoints.txt", api_key_env=VARIABLE))
    for folder in ("theirs", "mine", "others"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "endpoints.txt").write_text(f"{server.url}\n")
    monkeypatch.chdir(tmp_path / "theirs")
    path = elsewhere.run(job, tmp_path / "mailed.run", limit=1)
    monkeypatch.chdir(tmp_path / "mine")
    own = str(tmp_path / "mine" / "endpoints.txt")
    before, read = server.calls, []
    with monkeypatch.context() as watched:
        watched.setattr(AddressFile, "read", lambda file: read.append(file.path))
        with pytest.raises(NotConfirmed) as refused:
            Job.open(path).run(path)
        assert f"m at whatever addresses are in {own!r}, with the value of {VARIABLE}" in refused.value.message
        assert refused.value.allow == [f"@{own}", VARIABLE]
        for allowed in (f"@{own}", VARIABLE):
            with pytest.raises(NotConfirmed):
                Job.open(path, allow=allowed).run(path)
        for address in (server.url, own, "@../endpoints.txt"):
            with pytest.raises(NotConfirmed):
                Job.open(path, allow=[address, VARIABLE]).run(path)
    assert (server.calls, read) == (before, [])
    Job.open(path, allow=["@endpoints.txt", VARIABLE]).run(path, limit=3, cache=False)
    assert (server.calls, sent(server)) == (before + 2, f"Bearer {SECRET}")
    Job.open(path).run(path, limit=4, cache=False)  # confirmed for this plan, whatever the file then says
    monkeypatch.chdir(tmp_path / "others")  # where that name is another file
    with pytest.raises(NotConfirmed, match="others"):
        Job.open(path).run(path)
    assert server.calls == before + 3


def test_a_file_cannot_name_a_proxy_or_have_a_function_looked_up(tmp_path: Path):
    path = tmp_path / "a.run"
    Job.map("{{ x }}", [{"x": 1}]).by(Model("test")).run(path)
    for parameters in ('{"proxy":["http://evil"]}', '{"function":{"function":"os:system@0"}}'):
        service = "openai" if "proxy" in parameters else "function"
        with sqlite3.connect(path) as raw:
            row = f'{{"name":"x","service":"{service}","parameters":{parameters}}}'
            raw.execute("UPDATE models SET model = ?", (row,))
        raw.close()
        fitted(path)
        with pytest.raises((ListError, HeadraceError), match=r"no parameter 'proxy'|os:system"):
            Job.open(path, allow="https://api.openai.com/v1").run(tmp_path / "b.run")


def test_models_read_from_a_file_stay_claims_in_other_jobs(server: HostileServer, elsewhere: Elsewhere, tmp_path: Path):
    path = elsewhere.run(a_job(server), tmp_path / "evil.run", limit=1)
    before = server.calls
    for models in (list(Job.open(path).models), [Results.open(path)[0].model]):
        with pytest.raises(NotConfirmed):
            a_job(server).survey.by(AgentList.from_list("n", [1])).by(models).run(tmp_path / "mine.run")
    assert server.calls == before


async def ask(ctx: Any, path: str) -> str:
    return await ctx.ask(Job.open(path).models[0], "Well?")


@pytest.mark.anyio
async def test_an_engine_asks_no_model_of_a_file_either(server: HostileServer, elsewhere: Elsewhere, tmp_path: Path):
    path = elsewhere.run(a_job(server), tmp_path / "evil.run", limit=1)
    before = server.calls
    async with Engine(tmp_path / "e.run", isolation="inline") as engine:
        with pytest.raises(NotConfirmed):
            await engine.run(Job.open(path), path)
        run = await engine.submit(ask, str(path))
        with pytest.raises(HeadraceError, match="NotConfirmed"):
            await run.result()
        await engine.run(Job.open(path, allow=server.url), path)
    assert server.calls == before + 3


def test_memory_and_workers_that_a_file_asks_for_need_the_users_word(
    server: HostileServer, elsewhere: Elsewhere, tmp_path: Path
):
    path = elsewhere.run(a_job(server), tmp_path / "a.run", limit=1, memory="95%", workers=2)
    allowed = Job.open(path, allow=server.url)
    permissions = Permissions.of(allowed, path, RunOptions())
    usual = memory_limits(None).budget_bytes
    assert permissions.asks_for_memory
    assert permissions.memory_limits().budget_bytes == pytest.approx(usual, rel=0.1)
    assert permissions.confirmed.workers == 0
    given = Permissions.of(allowed, path, RunOptions(memory="95%", workers=2))
    assert given.memory_limits().budget_bytes > 1.5 * usual
    assert given.confirmed.workers == 2
    allowed.run(path, limit=2)  # as far as it is confirmed; the file keeps what is written in it
    assert (kept_budgets(path).budgets.memory, kept_budgets(path).budgets.workers) == ("95%", 2)
    allowed.run(path, limit=3, memory="95%", workers=2)
    assert not Permissions.of(Job.open(path), path, RunOptions()).asks_for_memory
    assert Permissions.of(Job.open(path), path, RunOptions()).confirmed.workers == 2
