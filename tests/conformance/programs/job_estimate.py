"""What a job would cost, before it is run."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
estimate = q.by(AgentList.from_list("age", [20, 30])).by(Model("test")).estimate_job_cost()

value = sorted(
    set(estimate) & {"estimated_total_cost_usd", "estimated_total_input_tokens", "estimated_total_output_tokens"}
)
