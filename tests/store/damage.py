"""Statements that damage a run file without breaking SQLite's pages: rows, counts and plans that have changed."""

CHANGED_ROWS = [
    "UPDATE interviews SET a0 = 'Goad' WHERE ordinal = 9",
    "UPDATE interviews SET a1 = 7.0 WHERE ordinal = 9",
    "UPDATE interviews SET status = 1 WHERE ordinal = 9",
    "UPDATE interviews SET agent = 8 WHERE ordinal = 9",
    "UPDATE interviews SET iteration = 1 WHERE ordinal = 9",
    "UPDATE interviews SET model = 1 WHERE ordinal = 9",
    "UPDATE interviews SET more = '[]' WHERE ordinal = 9",
    "UPDATE interviews SET checksum = 1 WHERE ordinal = 9",
    "UPDATE interviews SET checksum = 'x' WHERE ordinal = 9",
    "UPDATE agents SET fields = replace(fields, '24', '25') WHERE position = 4",
    "UPDATE agents SET fields = X'00' WHERE position = 4",
    "DELETE FROM agents WHERE position = 4",
    "UPDATE scenarios SET fields = replace(fields, 'Lima', 'Lime')",
]


CHANGED_COUNTS = [
    "UPDATE counters SET value = value + 1 WHERE name = 'output_tokens'",
    "UPDATE counters SET value = value - 1 WHERE name = 'done'",
    "UPDATE counters SET value = 'x' WHERE name = 'failed'",
    "DELETE FROM counters WHERE name = 'cost'",
]


CHANGED_PLANS = [
    "UPDATE questions SET name = 'moot' WHERE name = 'mood'",
    "UPDATE questions SET holds_bools = 1",
    "UPDATE models SET model = replace(model, 'x', 'y')",
    "UPDATE meta SET value = replace(value, 'What of', 'What if') WHERE key = 'survey'",
    "UPDATE meta SET value = 5 WHERE key = 'created_at'",
    "UPDATE meta SET value = X'00' WHERE key = 'dictionary'",
    "UPDATE meta SET value = 'x' WHERE key = 'identity.agents'",
    "UPDATE fields SET kinds = 0",
    "UPDATE boxes SET high = '1,199,2,1'",
    "DELETE FROM meta WHERE key = 'check'",
    'INSERT INTO meta VALUES(\'agent_settings\', \'[{"codebook":{"age":"Debt in euro"}}]\')',
]


# Of a file whose agents have a codebook with "Age in years".
CHANGED_SETTINGS = [
    "UPDATE meta SET value = replace(value, 'Age in years', 'Debt in euro') WHERE key = 'agent_settings'",
    "UPDATE meta SET value = CAST(value AS BLOB) WHERE key = 'agent_settings'",
    "UPDATE meta SET key = 'agent_settingt' WHERE key = 'agent_settings'",
    "DELETE FROM meta WHERE key = 'agent_settings'",
    "UPDATE meta SET value = value + 1 WHERE key = 'check.agent_settings'",
]


# Of a file that keeps a budget of tokens and a concurrency.
CHANGED_BUDGETS = [
    "UPDATE meta SET value = 9000000 WHERE key = 'budget.max_tokens_total'",
    "UPDATE meta SET value = 'many' WHERE key = 'budget.max_tokens_total'",
    "UPDATE meta SET value = CAST(X'FF' AS TEXT) WHERE key = 'budget.max_tokens_total'",
    "UPDATE meta SET key = 'budget.max_tokens_totam' WHERE key = 'budget.max_tokens_total'",
    "DELETE FROM meta WHERE key = 'budget.max_tokens_total'",
    "INSERT INTO meta VALUES('budget.max_cost', 5.0)",
    "UPDATE meta SET value = 0 WHERE key = 'budget.concurrency'",
    "UPDATE meta SET value = value + 1 WHERE key = 'check.budgets'",
    "UPDATE meta SET value = value + (1 << 32) WHERE key = 'check.budgets'",
    "UPDATE meta SET value = -value WHERE key = 'check.budgets'",
    "UPDATE meta SET value = 'x' WHERE key = 'check.budgets'",
]
