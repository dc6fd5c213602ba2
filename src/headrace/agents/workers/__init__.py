"""Agent runs in worker processes: the executor contract once more. A worker holds one run and its children.

The worker is the inline executor behind a wire (`agent_worker`); `agent_executor` is the controller's side, from the
loan to its return; `engine_workers` owns the processes of an engine and the memory lent to them.

What follows from a death (`workers.deaths` has the causes, `agent_deaths` the words): a run that was out of memory is
tried once more, alone and with all there is, then set aside with the reading, the step and the advice. Any other death
is tried again a few times and counts for the circuit of its kind.

Inside a side effect only an emergency goes as far as SIGKILL. After a kill of the controller, an engine that opens the
file waits for the former warden's end: what an old worker still does must not meet what its successor does. Heartbeats
stay in the controller.
"""
