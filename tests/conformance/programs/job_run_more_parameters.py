"""Parameters of run() that are about the hosted service or memory."""

from edsl import Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(Model("test", canned_response="fine")).run(
    disable_remote_inference=True,
    use_api_proxy=False,
    offload_execution=False,
    job_uuid=None,
    new_format=True,
    expected_parrot_api_key=None,
    alert_on_completion_config=None,
    results_description="a try",
    task_timeout=60,
    max_concurrency=5,
    memory_threshold=1_000_000_000,
    key_lookup=None,
    bucket_collection=None,
)

value = results.select("q").to_list()
