"""The job as a run file holds it: survey, lists, plan, conditions and budgets; written once, then only extended.

creation      the tables filled for the first time
stored_plan   ordinals: how the plan was made and grew
stored_lists  agents and scenarios
stored_where  what `Job.where` leaves out
kept_budgets  budgets as written
"""
