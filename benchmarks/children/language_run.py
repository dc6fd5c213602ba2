"""Runs a survey that uses the whole language: `language_run PATH INTERVIEWS`. Everything has its default.

Twenty questions of four kinds; each remembers all before it, every second one pipes an answer, and rules skip, jump
and stop by answers and by traits.
"""

import sys
from pathlib import Path

import headrace
from benchmarks import workload
from benchmarks.processes import loop_ms, print_figures

_ROUNDS = 5  # of four questions each


def survey() -> headrace.Survey:
    made = headrace.Survey()
    for number in range(_ROUNDS):
        for question in _round(number):
            made.add_question(question)
    made.set_full_memory_mode()
    for number in range(1, _ROUNDS):
        made.add_skip_rule(f"why{number}", "agent.age > 80")
        made.add_rule(f"likes{number}", f"likes{number} == 'No' and agent.member", f"why{number}")
        made.add_stop_rule(f"rating{number}", f"{{{{ rating{number}.answer }}}} > 9")
    return made


def _round(number: int) -> list[headrace.Question]:
    last = number - 1
    said = f"You rated the last one {{{{ rating{last}.answer }}}}. " if number else ""
    why = f"Earlier you said: {{{{ why{last}.answer }}}} " if number else ""
    return [
        headrace.QuestionMultipleChoice(
            question_name=f"mood{number}",
            question_text=f"{said}How do you feel about district {number} of {{{{ scenario.city }}}}?",
            question_options=["Good", "Bad", "Mixed"],
        ),
        headrace.QuestionYesNo(question_name=f"likes{number}", question_text="Would you live there?"),
        headrace.QuestionNumerical(
            question_name=f"rating{number}",
            question_text=f"You feel {{{{ mood{number}.answer }}}}. Rate it from 0 to 10.",
            min_value=0,
            max_value=10,
        ),
        headrace.QuestionFreeText(
            question_name=f"why{number}", question_text=f"{why}As a {{{{ agent.work }}}}, why do you think so?"
        ),
    ]


def _answers() -> dict[str, str]:
    """Of a kind: the second round is not liked, so that members jump over its rating."""
    why = workload.ANSWERS["why"]
    return {
        name: {"mood": "Good", "likes": "No" if name == "likes1" else "Yes", "rating": "7", "why": why}[name[:-1]]
        for name in survey().question_names
    }


def main(path: str, interviews: int) -> None:
    Path(path).unlink(missing_ok=True)
    agents = headrace.AgentList(workload.each_agent(headrace, interviews))
    model = headrace.Model("test", canned_response=_answers())
    results = survey().by(agents, headrace.Scenario({"city": "Oslo"}), model).run(path)
    stats = results.stats()
    assert (len(results), stats.failed) == (interviews, 0)
    print_figures(loop_ms=loop_ms(), asked=stats.calls)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
