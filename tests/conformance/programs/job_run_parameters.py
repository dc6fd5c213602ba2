"""Parameters of run() that EDSL's users give."""

from edsl import Cache, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(Model("test", canned_response="fine")).run(
    n=1,
    progress_bar=False,
    stop_on_exception=False,
    check_api_keys=False,
    verbose=False,
    print_exceptions=False,
    remote_cache_description="notes",
    remote_inference_description="notes",
    remote_inference_results_visibility="private",
    skip_retry=False,
    raise_validation_errors=False,
    background=False,
    disable_remote_cache=True,
    disable_remote_inference=True,
    fresh=False,
    cache=Cache(),
)

value = results.select("q").to_list()
