"""OpenTelemetry export of runs and engines: spans and metrics, made from what is journaled anyway.

    SurveyRun, after COMMIT ── rows ─────────────────────► InterviewSpans ─┐
    engine: attempts, steps, model calls with their times ► AgentRunSpans ─┴─► ExportThread ──► OtelExport ──► the
                                                                             (bounded queue)    (the SDK)     collector

The controller makes everything: executors report times, tokens and causes with their rows and steps, so a worker knows
nothing of telemetry, and every executor has it. Spans are made afterwards, with the times of what they describe.

**Never in the way.** The run's loop puts work into a bounded queue and goes on; what does not fit is dropped and
counted. A thread of its own loads OpenTelemetry, decodes and makes spans; the SDK's batch processor sends them from
another one, and drops the oldest when its queue is full. The end waits for what is left, for a few seconds at most.
Where telemetry is off, nothing of this folder is loaded: the cost is one comparison with None for each batch of rows.

**Nothing unasked.** It is on where the program says `telemetry=True`. Names, numbers and causes are sent; prompts and
answers only where the convention's variable says so (conventions.captures_content). Keys are in none of them, and
neither are messages of errors, which may quote anything.

    conventions      the pinned version, names of attributes, what a model is called in them
    otel_export      the only module that knows OpenTelemetry: providers, spans, the two histograms
    export_thread    the queue and its thread
    interview_spans  committed rows to spans
    agent_run_spans  attempts, steps and model calls of agent runs to spans

Does not cover: /metrics for Prometheus and the page (web).
"""
