"""The job as a run file holds it: survey, lists, plan, conditions and budgets; written once, then only extended,
but for budgets and models' settings, which later runs may change.

creation      the tables filled for the first time
stored_plan   ordinals: how the plan was made and grew
stored_lists  agents and scenarios
stored_where  what `Job.where` leaves out
kept_budgets  budgets as written
kept_models   prices, key variables and limits of models, as given last
"""
