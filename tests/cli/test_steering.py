import json
import os
import re
import socket
import stat
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from headrace import Model, QuestionFreeText, Result, Survey
from headrace.errors import Interrupted, NotRunning, NotSteerable
from headrace.interviews.steering.client import ask, state_of
from headrace.interviews.steering.messages import (
    PauseRequest,
    ResumeRequest,
    StateRequest,
    StopRequest,
    TuneRequest,
)
from headrace.store.holder_socket.socket_address import encoded
from tests.cli.forked import headrace
from tests.cli.live import SURVEY, endless, live, told
from tests.forks import Forks
from tests.trouble.children import until


@pytest.fixture
def place(tmp_path: Path, forks: Forks) -> Path:
    (tmp_path / "s.yaml").write_text(SURVEY)
    return tmp_path


def wait_until_drained(path: Path) -> int:
    """What is done once nothing is in flight."""

    def look() -> int | None:
        state = ask(path, StateRequest())
        return state.progress.done if state.progress.in_flight == 0 else None

    return until(look, "what is in flight to end", every_s=0.02)


@pytest.mark.parametrize("more", [[], ["--workers", "2"]], ids=["inline", "workers"])
def test_a_run_is_paused_watched_tuned_and_resumed_from_another_terminal(more: list[str], place: Path):
    path = place / "a.run"
    with live(place, *endless("a.run", interviews=1_000), *more) as run:
        run.state_once(path)
        with live(place, "status", "a.run", "--watch") as watch:
            assert told(place, "pause", "a.run")["state"] == "paused"
            watch.wait_for_line("paused: ")  # before it is resumed: the watcher looks once a second only
            done = wait_until_drained(path)
            status = told(place, "status", "a.run")
            assert (status["state"], status["pid"], status["in_flight"]) == ("paused", run.pid, 0)
            assert status["interviews"] == done < 1_000
            assert status["seconds"] > 0  # of a run that has not ended
            assert told(place, "tune", "a.run", "--concurrency", "50")["concurrency"] == 50
            assert "headrace resume a.run" in headrace(place, "status", "a.run").stdout
            assert ask(path, StateRequest()).progress.done == done
            resumed = headrace(place, "resume", "a.run", "--memory", "900MB")
            assert f"running in process {run.pid}" in resumed.stdout
            assert "keeps the options it was started with" in resumed.stderr
            assert run.ended()[0] == 0
            code, seen, _ = watch.ended()
    assert code == 0
    assert seen.splitlines()[-1] == "complete: 1,000 of 1,000 interviews, 0 failed"
    assert sorted(entry.name for entry in place.iterdir()) == ["a.run", "s.yaml"]


@pytest.mark.parametrize("more", [[], ["--workers", "2"]], ids=["inline", "workers"])
def test_a_tuned_run_has_as_many_in_flight_as_it_was_told(more: list[str], place: Path):
    path = place / "a.run"
    with live(place, *endless("a.run", latency_s=0.02), *more) as run:
        run.state_once(path)
        ask(path, TuneRequest(40))
        until(lambda: ask(path, StateRequest()).progress.in_flight == 40, "a wider window", every_s=0.02)
        ask(path, TuneRequest(2))
        until(lambda: ask(path, StateRequest()).progress.in_flight <= 2, "a narrower window", every_s=0.02)
        seen = {ask(path, StateRequest()).progress.in_flight for _ in range(30)}
    assert max(seen) <= 2


def test_a_run_that_goes_on_is_not_started_twice(place: Path):
    with live(place, *endless("a.run")) as run:
        run.state_once(place / "a.run")
        ended = headrace(place, "resume", "a.run")
        assert (ended.returncode, ended.stdout) == (1, "")
        assert f"a.run is already running in process {run.pid}" in ended.stderr
        assert run.is_alive


def test_there_is_nothing_to_steer_where_nothing_runs(place: Path):
    assert headrace(place, *endless("a.run", latency_s=0, interviews=3)).returncode == 0
    for words in (("pause", "a.run"), ("tune", "a.run", "--concurrency", "5"), ("stop", "a.run")):
        ended = headrace(place, *words)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert "Nothing is running" in ended.stderr
    assert "There is no run file at" in headrace(place, "pause", "b.run").stderr


def test_only_its_owner_may_open_the_socket_whatever_the_umask(place: Path):
    with live(place, *endless("a.run"), umask=0) as run:
        run.state_once(place / "a.run")
        made = (place / "a.run.sock").stat()
        assert stat.S_ISSOCK(made.st_mode)
        assert stat.S_IMODE(made.st_mode) == 0o600


def test_a_process_of_another_user_is_not_asked(place: Path, monkeypatch: pytest.MonkeyPatch):
    with live(place, *endless("a.run")) as run:
        run.state_once(place / "a.run")
        monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
        with pytest.raises(NotSteerable, match="another user"):
            ask(place / "a.run", PauseRequest())
        monkeypatch.undo()
        assert not ask(place / "a.run", StateRequest()).progress.is_paused


def test_the_time_of_a_killed_run_is_counted_until_its_last_commit(place: Path):
    with live(place, *endless("a.run")) as run:
        run.state_once(place / "a.run")
        until(lambda: told(place, "status", "a.run")["seconds"] > 3, "3 s", every_s=0.2)
        run.kill()
    status = told(place, "status", "a.run")
    assert (status["state"], status["pid"]) == ("not running", None)
    assert 1 <= status["seconds"] < 60


def test_a_file_that_is_moved_is_told_when_that_is_seen_and_at_the_end_where_it_is(place: Path):
    with live(place, *endless("a.run", latency_s=0.5)) as run:
        run.state_once(place / "a.run")
        (place / "a.run").rename(place / "b.run")
        code, _, err = run.ended()
    seen, last = err.splitlines()
    assert re.fullmatch(r"headrace: .*a\.run: the file or its log was moved, .*; stopping: \d+ in flight", seen)
    assert re.fullmatch(r"headrace: .*a\.run was moved to .*b\.run .* go on with that path: .*b\.run", last)
    assert code == 1


def test_a_killed_run_leaves_a_socket_that_nobody_answers_and_the_next_run_replaces(place: Path):
    path = place / "a.run"
    with live(place, *endless("a.run")) as run:
        run.state_once(path)
        run.kill()
    assert (place / "a.run.sock").exists()
    assert state_of(path) is None
    with pytest.raises(NotRunning):
        ask(path, PauseRequest())
    with live(place, "resume", "a.run", "--concurrency", "3") as again:
        assert again.state_once(path).pid == again.pid
        assert ask(path, StopRequest()).is_stopping
        code, _, err = again.ended()
    assert (code, err.count("headrace resume a.run")) == (130, 1)
    assert not (place / "a.run.sock").exists()


def test_clients_that_misbehave_do_not_hurt_a_run(place: Path):
    path = place / "a.run"
    rubbish = [os.urandom(5000), b"\xff\xff\xff\xff" + b"x" * 2000, b"\0\0\0\1\xc1", b"\0\0\0\0", b"\0", b""]
    with live(place, *endless("a.run")) as run:
        before = run.state_once(path).progress.done
        clients = [socket.socket(socket.AF_UNIX) for _ in range(24)]
        try:
            for number, client in enumerate(clients):
                client.settimeout(5)
                client.connect(str(place / "a.run.sock"))
                client.send(rubbish[number % len(rubbish)])  # and never read, and never leave
            seen = run.state_once(path, done=before + 20)  # in its turn, after those who are out of time
        finally:
            for client in clients:
                client.close()
        assert not seen.progress.is_paused
        assert Path(f"/proc/{run.pid}").exists()
        until(lambda: _sockets_of(run.pid) <= 3, "their connections to be closed")


def test_a_request_whose_sender_gave_up_is_not_carried_out_later(place: Path):
    path = place / "a.run"
    with live(place, *endless("a.run")) as run:
        before = run.state_once(path).progress.done
        run.freeze()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(place / "a.run.sock"))
            client.send(encoded(PauseRequest()))
        run.thaw()
        assert not run.state_once(path, done=before + 10).progress.is_paused


def _sockets_of(pid: int) -> int:
    found = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            found += "socket:" in str(entry.readlink())
    return found


def test_requests_that_make_no_sense_are_refused_in_words(place: Path):
    with live(place, *endless("a.run")) as run:
        run.state_once(place / "a.run")
        with pytest.raises(NotSteerable, match="Expected `int` >= 1"):
            ask(place / "a.run", TuneRequest(0))
        assert ask(place / "a.run", StateRequest()).concurrency == 4


def test_a_path_of_any_length_can_be_steered(place: Path):
    deep = place / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    path = deep / ("f" * 150 + ".run")
    with live(place, *endless(str(path))) as run:
        run.state_once(path)
        assert ask(path, PauseRequest()).progress.is_paused
        assert [entry.name for entry in deep.iterdir() if entry.is_dir()] == []
        assert not ask(path, ResumeRequest()).progress.is_paused


def test_a_run_without_a_socket_goes_on_and_is_watched_through_its_file(place: Path):
    # Neither the file's directory nor the temporary one has a name that fits into a socket's address.
    deep = place / ("d" * 120)
    deep.mkdir()
    path, environment = deep / "a.run", {**os.environ, "TMPDIR": str(deep)}
    with live(place, *endless(str(path)), environment=environment) as run:
        until(lambda: path.exists() or not run.is_alive, "the file", every_s=0.02)
        with pytest.raises(NotSteerable, match=f"process {run.pid}, which cannot be asked"):
            ask(path, PauseRequest())
        with live(place, "status", str(path), "--watch") as watch:
            assert watch.first_line().startswith("running: ")
            run.interrupt()
            assert run.ended()[0] == 130
            code, seen, _ = watch.ended()
    assert (code, seen.splitlines()[-1].partition(": ")[0]) == (0, "not running")
    assert [entry.name for entry in deep.iterdir()] == ["a.run"]


def test_who_watches_a_stopped_process_sees_its_file_once_a_second(place: Path):
    with live(place, *endless("a.run")) as run:
        run.state_once(place / "a.run")
        run.freeze()
        with live(place, "status", "a.run", "--watch", "--json") as watch:
            first = json.loads(watch.first_line())
            assert (first["state"], first["pid"]) == ("running", run.pid)
            began_s = time.monotonic()
            for _ in range(3):
                watch.first_line()
            assert time.monotonic() - began_s < 10
            run.thaw()
            until(lambda: "in_flight" in json.loads(watch.first_line()), "an answer")


def test_the_first_ctrl_c_ends_what_runs_and_names_the_command_to_go_on(place: Path):
    with live(place, *endless("a.run")) as run:
        run.state_once(place / "a.run")
        run.interrupt()
        code, out, err = run.ended()
    status = told(place, "status", "a.run")
    assert (code, out) == (130, "")
    saved = f"{status['interviews']:,} of 100,000 interviews are saved in a.run"
    heard, last = err.splitlines()
    assert re.fullmatch(r"stopping(: \d in flight)?; again to stop now", heard)
    assert last.startswith(f"Stopped. {saved}; go on with: ")
    assert err.endswith("headrace resume a.run\n")
    assert status["state"] == "not running"
    assert headrace(place, "resume", "a.run", "--limit", str(status["interviews"] + 5)).returncode == 0
    assert told(place, "status", "a.run")["interviews"] == status["interviews"] + 5


def test_the_second_ctrl_c_stops_at_once_and_names_the_same_command(place: Path):
    with live(place, *endless("a.run", latency_s=100.0)) as run:
        run.state_once(place / "a.run", done=0)
        until(lambda: ask(place / "a.run", StateRequest()).progress.in_flight == 4, "calls to wait for", every_s=0.02)
        run.interrupt()
        until(lambda: ask(place / "a.run", StateRequest()).is_stopping, "the first Ctrl-C to arrive", every_s=0.02)
        assert told(place, "status", "a.run")["state"] == "stopping"
        run.interrupt()
        code, out, err = run.ended()
    assert (code, out) == (130, "")
    *heard, last = err.splitlines()
    assert heard == ["stopping: 4 in flight; again to stop now", "stopping now"]
    assert last.startswith("Stopped. 0 of 100,000 interviews are saved in a.run; go on with: ")
    assert err.endswith("headrace resume a.run\n")
    assert sorted(entry.name for entry in place.iterdir()) == ["a.run", "s.yaml"]


def test_a_paused_run_ends_at_a_ctrl_c(place: Path):
    with live(place, *endless("a.run")) as run:
        run.state_once(place / "a.run")
        ask(place / "a.run", PauseRequest())
        run.interrupt()
        assert run.ended()[0] == 130


def test_whoever_listens_gets_all_results_of_a_run_that_is_stopped_from_outside(place: Path):
    job = Survey([QuestionFreeText(question_name="q", question_text="Well?")]).by(Model("test", latency_s=0.02))
    path, heard = place / "a.run", list[int]()

    def listen(result: Result) -> None:
        heard.append(result.ordinal)
        time.sleep(0.01)

    stopper = threading.Thread(target=lambda: (until(lambda: len(heard) > 20, "results"), ask(path, StopRequest())))
    stopper.start()
    with pytest.raises(Interrupted) as stopped:
        job.run(path, n=10_000, concurrency=20, on_result=listen)
    stopper.join()
    assert sorted(heard) == list(range(stopped.value.done))
