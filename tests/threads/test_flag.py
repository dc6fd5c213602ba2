"""A flag that is set in one thread and waited for in another."""

import asyncio
import signal
import threading
import time

import pytest

from headrace.threads.flag import Flag


def test_a_wait_ends_when_the_flag_is_set_and_at_its_longest():
    flag = Flag()
    started_s = time.monotonic()
    assert flag.wait(0.01) is False
    threading.Timer(0.05, flag.set).start()
    assert flag.wait(60) is True
    assert flag.wait(60) is True
    assert time.monotonic() - started_s < 30


def test_a_flag_that_is_set_again_stays_set():
    flag = Flag()
    flag.set()
    flag.set()
    assert (flag.is_set, flag.wait(60)) == (True, True)


def press_while_waiting(flag: Flag) -> None:
    threading.Timer(0.01, signal.pthread_kill, [threading.get_ident(), signal.SIGINT]).start()
    while not flag.wait(1):  # the key may come before, and wakes nobody then
        pass


def test_a_wait_that_ctrl_c_ends_keeps_nobody_from_setting_it():
    flag = Flag()
    for _ in range(20):
        with pytest.raises(KeyboardInterrupt):
            press_while_waiting(flag)
    setter = threading.Thread(target=flag.set)
    setter.start()
    setter.join(10)
    assert not setter.is_alive()
    assert flag.wait(60) is True


async def test_a_coroutine_waits_for_it_and_others_go_on_when_one_is_cancelled():
    flag = Flag()
    first, second = asyncio.ensure_future(flag.reached()), asyncio.ensure_future(flag.reached())
    await asyncio.sleep(0.01)
    first.cancel()
    assert not second.done()
    threading.Timer(0.01, flag.set).start()
    await asyncio.wait_for(second, 60)
    await asyncio.wait_for(flag.reached(), 60)
    assert first.cancelled()


def test_a_loop_that_was_closed_keeps_nobody_from_setting_it():
    flag = Flag()

    async def give_up() -> None:
        waiting = flag.reached()
        waiting.send(None)
        abandoned.append(waiting)

    abandoned = []
    asyncio.run(give_up())
    flag.set()
    assert flag.is_set
    abandoned[0].close()
