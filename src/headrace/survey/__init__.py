"""What is asked of whom: questions, rules, agents, scenarios, models, prompts. Pure: it does no input or output."""
