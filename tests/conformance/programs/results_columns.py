"""Every column can be selected by its name."""

from edsl import Agent, Model, QuestionFreeText, Scenario

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.city }}?")
results = q.by(Agent(traits={"age": 20})).by(Scenario({"city": "Oslo"})).by(Model("test", canned_response="x")).run()
wanted = [
    "agent.age",
    "agent.agent_index",
    "agent.agent_name",
    "answer.q",
    "cache_used.q_cache_used",
    "comment.q_comment",
    "generated_tokens.q_generated_tokens",
    "iteration.iteration",
    "model.inference_service",
    "model.model",
    "prompt.q_system_prompt",
    "prompt.q_user_prompt",
    "question_options.q_question_options",
    "question_text.q_question_text",
    "question_type.q_question_type",
    "raw_model_response.q_cost",
    "raw_model_response.q_input_tokens",
    "raw_model_response.q_output_tokens",
    "raw_model_response.q_raw_model_response",
    "reasoning_summary.q_reasoning_summary",
    "scenario.city",
    "scenario.scenario_index",
    "validated.q_validated",
]

value = [name for name in wanted if len(results.select(name).to_list()) == 1]
