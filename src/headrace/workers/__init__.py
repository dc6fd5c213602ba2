"""Worker processes held to a memory limit. Knows nothing of surveys or agents; usable and tested by itself.

    controller (pool, lender) ── fork, set limit, kill ──►  warden ──► standby behind it
         │  ◄─────────────── readings, deaths ───────────     │ forks, watches
         │                                                    ▼
         └── socket pair (handle, channel) ─────────────►  worker: a function called for each task
             WorkerTask, TaskMessage ►    ◄ TaskMessage, TaskDone, TaskFailed, TaskOutOfMemory

- The controller makes each worker's socket pair and passes one end through the warden, so tasks never go through it.
- The channel is non-blocking at both ends (`channel`, `worker_channel`): each end queues what does not leave at once
  and goes on reading, so messages of any size cross. A worker that is behind waits: the controller reads only as fast
  as it can write to disk, and that is all the backpressure there is.
- A worker numbers its tasks. A message of an earlier task, from a thread that it left behind, is refused.
- A task may host an executor behind a wire (`hosting/`): interviews and agent runs are two vocabularies on it.
- A limit counts what a worker uses above what it was forked with. RLIMIT_DATA bounds private memory and is met as a
  MemoryError inside the worker; the warden adds up the worker's whole tree and kills it above the limit.
- Limits are lent (`lending` decides how much, `lender` does it), in the order of priority: each busy worker has what it
  uses and what its work was promised; the rest of the budget goes to the highest level first, within a level by use, up
  to the largest loan allowed. One that waits keeps what it uses and a little more. Before one limit rises, others
  have come down, and the warden takes none below what is in use plus some room. All loans together stay below the level
  where the governor kills. From 80 % of a limit on, the controller hears of it within milliseconds.
- A loan begins inside the lender's lock together with the start of its worker, after workers that are leaving have
  returned theirs, or after a second.
- A worker that met a MemoryError, has grown, has had a hundred tasks, or in which a task has left a thread, a process,
  a timer, a closed stream or another directory, signal handler, limit or user (`leftovers`), is ended, not used again.
- Stopping is cooperative inside the worker; then SIGTERM, then SIGKILL, a second apart.
- A function travels as module, name and file (`functions`). A script is imported again as `__mp_main__`, so what it
  does must stand under `if __name__ == "__main__":`.
- Programs that are not Python (`command`) have the same limits and the same watchdog; their streams are files.
- An event loop that is stuck in a worker (`watched_loop`): the worker counts its loop's turns in a shared page
  (`progress_page`); the warden asks one that does not turn for its stack, by a signal whose handler is C.
- What a worker's death means (`deaths`) is one table: out of memory, crashed, hung, or lost to a signal from outside.

Does not cover: the messages of interviews and of agent runs, and what follows from a death for them
(`interviews.workers`, `agents.workers`).
"""
