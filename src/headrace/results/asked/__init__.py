"""Questions as they are put: every prompt of a job before it runs, and after it what each interview was shown.

Does not cover: writing a prompt (survey.asked_question), or columns of stored prompts (results.columns.question_parts).
"""
