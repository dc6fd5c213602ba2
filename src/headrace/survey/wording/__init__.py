"""What a prompt holds beside its question: the answers given before it, the survey's instructions, the options' order.

    Survey.memory        ──► remembering   ┐
    Survey.instructions  ──► instruction   ├──► survey.asked_question writes the prompt
    questions_to_randomize ► option_order  ┘

Does not cover: the question's own text and closing (survey.questions), or the persona (survey.prompts).
"""
