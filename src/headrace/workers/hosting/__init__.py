"""An executor behind a wire, inside a worker: both sides, for every vocabulary of messages.

    controller                                                            worker
    executor of interviews or agent runs                                  inline executor
        │ start, signal, ack                                                 ▲ start, signal, ack   │ events
        ▼                                                                    │                      ▼
    HostedExecutor ── SignalWork, AckEvents, the vocabulary's own ──► host_executor ◄── HostLink ── Outbox
        ▲                           (one socket pair a worker)                                      │
        └──────────── EventsSent, the vocabulary's own ◄────────────────────────────────────────────┘
        │ hear(message, size)
        ▼
    Outbox: merged, renumbered ── batches ──► journal ── ack ──► HostedExecutor.acknowledge, of each event's worker

Why: interviews and agent runs need the same from a worker: messages in order, backpressure, events that are kept until
they are on disk, and refusing what comes late. Only their words differ.

- **Messages** (`executor_wire`). A payload is a list of typed messages; those of one turn of an event loop travel
  together. `SignalWork`, `AckEvents` and `EventsSent` are shared; a vocabulary is a union of these and its own.
- **The worker's side** (`executor_host`). One loop obeys messages, one sends batches of events. Sending waits while the
  controller does not read. A batch that is too large for one message is sent event by event.
- **The controller's side** (`hosted_executor`). One object a worker. While the outbox is full nothing is read.
- **Acknowledgements.** An event has one number in its worker and another in the controller. When the second is on disk,
  the first is acknowledged to the worker that the event came from, if that one still lives.
- **Epochs.** A worker numbers its tasks, a part of a chunk counts how often it was given out, an agent run counts its
  attempts. A message of another task, and an event of another epoch, is refused.
"""
