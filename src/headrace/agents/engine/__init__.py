"""The engine: the loop where scheduler, engine file and executors of agent runs meet, and the handle that users hold.

    Engine (engine, the caller's thread) ── calls in batches ──► EngineLoop (loop, the engine's thread)
                                                                   │ scheduler_driver: one event at a time
                                                                   ▼
    engine_writer ◄── writes ── run_lives, backlog ◄── commands ── scheduler

- `scheduler_driver` feeds the scheduler one event at a time, and no command overtakes another.
- `run_lives` starts, journals and ends runs; `backlog` keeps those that wait on disk or for room; `live_runs` is what
  the engine holds of runs in RAM.
- `agent_requests` answers what running agents ask for; `owner_requests` what the holders of `Run` ask for.
- `engine_writer` commits in groups: whatever came while the last COMMIT ran makes the next batch.
- `surveys`: a survey inside an engine is a tenant with a run file of its own.
- `event_log` records what the engine did and why; `status` is what `engine.status()` shows. Both are bounded.
- When the loop's thread is stuck, a kernel timer writes its stack to a file beside the engine's (`threads`).
"""
