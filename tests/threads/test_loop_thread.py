"""A loop in a thread of its own, where Ctrl-C comes as it starts."""

import threading

import pytest

from headrace.errors import HeadraceError
from headrace.threads.loop_thread import LoopThread


async def main() -> str:
    return "done"


def test_a_thread_that_cannot_be_made_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    thread = LoopThread(main)
    with pytest.raises(RuntimeError, match="can't start"):
        thread.start()
    assert not thread.is_running
    thread.call(print)
    thread.join()


class PressedOnceBehind:
    """The lock, with a Ctrl-C right behind its first taking."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_pressed = False

    def acquire(self, *, blocking: bool) -> bool:
        taken = self.lock.acquire(blocking=blocking)
        if not self.is_pressed:
            self.is_pressed = True
            raise KeyboardInterrupt
        return taken


def test_two_ctrl_c_before_the_thread_is_made_end_the_wait(monkeypatch: pytest.MonkeyPatch):
    def press(_: threading.Thread) -> None:
        raise KeyboardInterrupt

    thread = LoopThread(main)
    monkeypatch.setattr(threading.Thread, "start", press)
    monkeypatch.setattr(thread, "_first", PressedOnceBehind())
    with pytest.raises(KeyboardInterrupt):
        thread.start()
    monkeypatch.undo()
    watched = threading.Thread(target=thread.call, args=(print,), daemon=True)
    watched.start()
    watched.join(30)
    assert not watched.is_alive()
    assert not thread.is_running


def test_a_thread_that_is_given_up_as_it_begins_says_so_and_does_nothing(monkeypatch: pytest.MonkeyPatch):
    begins, start = threading.Event(), threading.Thread.start

    def start_and_press(made: threading.Thread) -> None:
        start(made)
        raise KeyboardInterrupt

    thread = LoopThread(main)
    run = thread._run
    thread._thread = threading.Thread(target=lambda: (begins.wait(30), run()), daemon=True)
    monkeypatch.setattr(threading.Thread, "start", start_and_press)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
    monkeypatch.undo()
    assert not thread.is_running
    begins.set()
    with pytest.raises(HeadraceError, match="given up before it began"):
        thread.future.result(30)
    assert thread.has_ended.wait(30)
