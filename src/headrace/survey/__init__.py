"""A survey says what is asked of whom: questions, rules, agents, scenarios, models, prompts. Pure: no input or output.

    Survey (questions, rules) ─┐
    Agent, Scenario, Model ────┼──► prompts ──► (a model's reply) ──► replies ──► the answer that the question accepts
    templates ─────────────────┘

- A kind of question is a file in `questions/`, loaded because it is there.
- A reply is data. `replies` finds the answer and its comment in it, then the question accepts or refuses the answer.
- `names` says what a name in a text or a rule stands for; bare names are resolved once per plan (plan.fitting).
- Templates may be anybody's text: `template_texts` reads a template's source before it is compiled and refuses one that
  could multiply its data without bound, and `template_filters` asks each filter that can grow its input how large the
  result would be. Rendering gets plain data only (str, int, list, dict), because minijinja would call methods of Python
  objects.
- `values` defines which values traits, fields and answers may hold, and the two forms in which they are stored.
- `model` describes a model; reaching it is the folder `models/`. `secrecy` refuses parameters that hold a key, because
  a description is stored, shown and compared.

Does not cover: lists of agents and scenarios (`plan`). Verbs that users call here and `plan` carries out (`Survey.by`,
`Survey.save`, `Model.available`) import it inside the method.
"""
