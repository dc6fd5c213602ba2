"""Interviews in worker processes (`job.run(workers=2)`): the executor contract once more.

    SurveyRun                                                    each worker
       │ Chunk        ▲ Batch: rows, answers, Spent              InlineExecutor
       ▼              │                                             ▲ its limiters and cache ask the controller
    IsolatedExecutor ─┴─ Outbox: merged                             │
       │ parts of chunks (assignment, chunks_in_flight)             │
       ▼                                                            ▼
    WorkerSlot ══ one socket ═══════════════════════════════════ CallLink (interview_worker)
                  StartChunk, SetLease, SetAddresses, SignalWork, AckEvents ►
                  ◄ ChunkTaken, EventsSent
                  ◄ TurnWanted, CallsBegun, CallFollowed, CallEnded, Charged
                  TurnGranted, TurnRefused, TurnsRecalled ►
                  ◄ CacheLookup, CacheReply                        CacheAnswer ►

Each worker is an `InlineExecutor` and owns nothing: the controller's limiters lend it turns (`worker_turns` there,
`remote_limiter` here; models.turn_leases says when), its response cache answers lookups, and ended interviews come back
as flat values that the journal's statements take as they are.
`assignment` decides which worker gets what, `chunks_in_flight` keeps chunks, an `Outbox` puts the workers' events into
one order, `interview_deaths` describes a death. The wire, and keeping and acknowledging events, is `workers.hosting`. A
worker's limit is an equal share of what the budget leaves.

A part that is given out again after its worker's death has the next epoch; late events of an earlier one are refused.

What follows from a death (`workers.deaths` has the causes): an interview fails only for what it did itself.
1. The worker ended by its own doing (its memory limit, SIGSEGV, an exit) and did not name the interview: those in
   flight are tried again in halves (`chunk_parts`), each alone in a new worker.
2. An interview that ends its worker there too gets the only worker with all the memory there is, where that may help,
   and has then failed with its cause. Where that works, the run stays with one worker.
3. After an out-of-memory death each worker has half as many interviews at once. Where not even one interview fits, or
   many do not, the run ends with BudgetTooSmall.
4. Any other signal came from outside: the interviews are conducted again, after a pause that doubles. An interview that
   was lost ten times alone is left for a later run, and a run whose workers never live to end one stops.

What a dead worker has paid for is counted (`worker_slot`): the worker reports each request when it begins and each
call's usage when it ends. Usage that no row or answer counts becomes the event Spent, and its interviews are conducted
again only when that is on disk, as far as the budget then affords.
"""
