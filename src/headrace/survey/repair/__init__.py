"""Finds the value that was asked for in what a model really wrote: JSON, a number, the lines of a list.

Pure functions of a text, bounded in size, depth and time. Each gives the value that the text can only mean, or None:
what can be read in two ways is not repaired, the model is asked again. Nothing is evaluated.

Does not cover: what a question accepts (survey.questions), asking again (interviews.interview).
"""
