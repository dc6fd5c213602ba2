"""Runs event loops in threads of their own, passes calls between them, and notices a loop that is stuck.

    caller's thread                             the run's thread (loop_thread)
    ────────────────                            ──────────────────────────────
    await engine.submit(...)  ── crossing ──►   engine loop: scheduler, store, executors
    LoopPromise.future        ◄── crossing ──        │ beat                    ▲ stack, in C
                                                     ▼                         │
                                          stuck_loop: a thread looks      kernel timer ──► .<file>-stuck

Why threads: `job.run()` and `Engine` work in a script, in a notebook and inside a loop that the caller blocks, because
their own loop never runs in the caller's thread.

The objects
- `loop_thread`: one coroutine to its end on a loop of its own. A fork knows that the thread is its parent's.
- `flag`: set in one thread, waited for in another, wherever a Ctrl-C comes meanwhile.
- `crossing`: calls to another thread's loop, and promises that the loop fills. Waking a loop costs a system call and a
  switch of threads, so whatever waits when it wakes crosses together.
- `slow_turns`: times the turns of watched tasks: who blocked the loop, once it goes on.
- `stack_dump`: a thread writes its stack to a file when it gets SIGURG, in C, also while no Python code can run.
- `stuck_loop`: the engine's loop beats; a thread reports when it has not, with the stack.
- `traceback_timer`: the kernel timer that sends SIGURG to the engine's thread.

Stuck loops: one dump, two ways to ask for it. Both the engine's loop and a worker's loop dump by `stack_dump`; who
notices and sends the signal differs, and neither way can serve the other:

                     engine's loop (stuck_loop, traceback_timer)      a worker's loop (workers.warden.stuck)
    who notices      a kernel timer, and a thread that reports        the warden, from outside
    who is told      nobody need live: the file outlives a kill       the controller, by a report
    how it counts    a beat a turn of the engine, ten times a second  two counters a turn, in shared memory
    needs            nothing: inline engines have no warden           a warden; a loop made of Python's selectors

- The engine's loop cannot be left to the warden. An inline engine has none, and where there is one, the process that
  would report what the warden says is the one that is stuck. The loop is uvloop's, whose waits cannot be counted, and
  it is not in the main thread, to which a signal from another process would go.
- A worker's loop cannot use the timer. It has to be set when the loop goes on and cleared when it waits, or an idle
  worker would look stuck: 2.1 us of CPU each, 4.3 us a turn, against 0.1 us for two counters. And a worker that holds
  Python's lock cannot report; another process has to look in any case.
"""
