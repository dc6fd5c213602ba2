"""The lazy product of a survey, agents, scenarios, models and iterations. Nothing here grows with the job."""
