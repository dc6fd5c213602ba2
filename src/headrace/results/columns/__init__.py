"""The columns of results: which there are, what they are called, and their values in a row.

result_column  one column, and the kinds of its values
catalog        all columns of a file: found by name, expanded from patterns
question_parts what each question has beside its answer, by EDSL's names; raw_responses reads a service's bytes
binding        the names of an expression, bound to columns; sql_names does the same for a user's SQL
records        the values of columns in a row as it is read; page_values those of a whole page, without a call a row
"""
