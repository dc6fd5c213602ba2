"""Agent runs in worker processes: the executor contract once more. A worker holds one run and its children.

    engine loop                                                  a slot's worker
       │ AgentRun     ▲ Batch: steps, checkpoints, requests      InlineAgents, on a loop of its own
       ▼              │                                             ▲ acknowledged: the step goes on
    IsolatedAgents ───┴─ AgentOutbox: merged                        │
       │ AgentHost: a loan of memory, then a worker (AgentSlot)     ▼
    HostedExecutor ══ one socket ═══════════════════════════════ HostLink (agent_worker)
                  BeginRun, StepAnswer, SignalWork, AckEvents, LeaveWorker ►
                  ◄ EventsSent, StepEntered, EffectRaised, KindRegistered

The worker is the inline executor behind a wire (`agent_worker`); `agent_executor` is the controller's side, from the
loan to its return; `agent_host` is one host's workers and the memory lent to them, and there may be many: this machine,
or the nodes of a cluster (`agents.nodes`). `engine_workers` owns the processes of an engine on this machine. The wire,
and keeping and acknowledging events, is `workers.hosting`. An attempt at a run has an epoch; late messages of an
earlier one are refused.

While all runs of a slot wait for models, programs or children, the limit of its worker comes down; what makes it
compute again, an answer or a child's start, is sent to it when the limit is up.

What follows from a death (`workers.deaths` has the causes, `agent_deaths` the words): a run that was out of memory is
tried once more with more memory, then set aside with both readings, the step and the advice; but where its limit was
below what it was owed, it just comes back (`scheduler.exits`). Any other death is tried again a few times and counts,
once for each run, for the circuit of its kind.

Inside a side effect only an emergency goes as far as SIGKILL. After a kill of the controller, an engine that opens the
file waits for the former warden's end: what an old worker still does must not meet what its successor does. Heartbeats
stay in the controller.
"""
