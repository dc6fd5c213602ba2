"""What agents and scenarios can do with their fields, and how an agent's traits are written in a prompt.

An agent (survey.agent) and a scenario (survey.scenario) are rows of fields. Renaming, keeping and dropping fields means
the same for both, so it stands here once (field_verbs). What all agents of a list mostly share, a codebook and a
template, is kept apart from their rows (agent_settings): a list of a million agents stores it once.
"""
