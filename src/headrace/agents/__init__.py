"""Agent runs: durable async functions whose steps are journaled."""
