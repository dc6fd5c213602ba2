"""This folder reaches models. A call passes the response cache, its endpoint's limiter, and then its protocol.

    interview or agent run ──► calls ──► response cache: a reply that an earlier run paid for
                                 │
                                 └─► limiter (by priority) ──► provider (protocols/) ──► the service
                                       │ may it go?  ▲   │ how the call ended
                                       ▼             │   ▼
                                     endpoint/ (pure): concurrency, rates, breaker, pauses

Why: a service's limits, incidents and prices concern every call to it, so one limiter per endpoint, owned by the
controller, decides for all interviews and agent runs; worker processes ask it for turns and report results.

- `calls` (one model's calls, their price and tokens), `limiter` (the line before one endpoint), `shared_limiters` (the
  limiters of all models), `provider` (the contract: a request in, a reply or a ProviderError out).
- A call has the priority of the survey, agent run or heartbeat that makes it. The line is ordered by it, and while HIGH
  or CRITICAL calls come, a part of the endpoint's concurrency and rates is left to them.
- A model may have several addresses. Which of them can be reached travels with replies and errors to the limiter, which
  logs each change once. Where they are in a file, the controller reads it again when it changes and tells the
  providers, those in workers too (`address_list`).
- A wrong key, name or quota closes an endpoint: its interviews stay as they are, the other models go on, and the run
  ends with that one message. A call that would be sent with another key, `reopen`, or time opens it again. While an
  endpoint is held, its model's cursor in the plan stops, so that at most a window of interviews waits for it; a call
  that can probe it is always in line. `model_endpoints` is how people see an endpoint.
- A key is sent in one header. Everything that a service says passes `redaction`, which takes the key out in every
  encoding, before anything reads it.
- The response cache (`response_cache`, `cache_file`) is one SQLite file for all runs: rows appended, found by an index
  on 64 bits of their key, written in sorted batches by a thread of its own, oldest out at 2 GB. A run reads only what
  is older than its start. Busy, damaged, full or out of reach, it is skipped.
- `contacts` lists what a model would contact: address and key variable, or a model file. `services` makes the provider
  of a model, which is where a protocol is chosen.
- aiohttp and uvloop are loaded by the first model that needs them.
"""
