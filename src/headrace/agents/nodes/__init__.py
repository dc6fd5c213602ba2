"""Agent runs on the nodes of a cluster: where an engine's workers are, seen from its scheduler.

    Ray ──► RayNodes (cluster) ──► EngineNodes: a pool of workers and a lender for each node
                                       │ joined, readings, lost
                                       ▼
                                   ClusterHosts ── HostJoined, MemoryMeasured, HostLost ──► scheduler
                                       │
                                       └── join, lose ──► IsolatedAgents, the executor of workers on one machine

Why so little: the scheduler knows hosts, the executor knows pools of workers, and a pool knows its warden by orders and
reports. A node is one more of each. Steps, checkpoints and ends come back over the workers' channels and are
acknowledged after COMMIT, as on one machine; an attempt on a lost node is over at once, and its late words are refused
by its epoch.

- The controller writes the engine file, calls models (`ctx.ask`) and runs heartbeats and surveys: a host without slots.
- Programs (`ctx.command`) run on the node of their run, held to its memory (`cluster.program_streams`).
- A lost node costs the step that each run there was in. What its workers had said by then is journaled first. That
  counts against no run.
- After a kill of the controller, Ray ends the actors; an engine that opens the file waits on each node for the end of
  the warden that the file names.

Does not cover: nodes themselves (`cluster`), or surveys on nodes (`interviews.workers.survey_nodes`).
"""
