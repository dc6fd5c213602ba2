"""The engine: the loop where scheduler, engine file and executors of agent runs meet, and the handle that users hold.

    caller's thread                      the engine's thread
    Engine, Run ──── calls in batches ──► EngineLoop ──► backlog ── Submitted ──► driver: one event at a time
                                             │                                       │ ▲
                                             │ events of attempts                    ▼ │
    executor ─────────────────────────────► run_events ── StepJournaled ... ──────► scheduler
        ▲                                    │ writes                                │
        │                                    ▼                                       │ commands
        └──── start, signal, put ◄────── run_commands ◄──────────────────────────────┘
                                             │ writes
                                             ▼
                                         engine_writer: one COMMIT a batch, then acknowledgements and callers

- `engine_parts` is what these classes share: file, writer, driver, executor, runs, listeners, kinds, log, clock.
- `scheduler_driver` hands the scheduler one event at a time, and no command overtakes another.
- `live_runs` holds runs in RAM; `backlog` those that wait for room or on disk. A run in RAM is dropped when it ends or
  is parked, and until that is committed the disk's state of it does not count.
- `run_commands` carries out the scheduler's commands about runs; `run_events` journals what attempts report.
- `agent_requests` answers running agents; `caller_requests` answers holders of a `Run`. `held_answers` holds answers
  while the slot of the one that asked computes for somebody else.
- `engine_writer` commits in groups: all that was written while the last COMMIT ran makes the next batch.
- `surveys`: a survey inside an engine keeps a run file of its own, and has as many permits as the scheduler grants.
- `event_log` records what the engine did and why; `status` is what `engine.status()` shows. Both are bounded.
- When the loop's thread is stuck, a kernel timer writes its stack to a file beside the engine's (`threads`).
"""
