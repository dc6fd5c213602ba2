"""Names of EDSL and pandas that Headrace does not have, each with the way to do it here; and what a mistyped name was
meant to be.

Covers: attributes of the objects that users hold, and names imported from `headrace`. Does not cover: classes that can
be imported and refuse to be made (headrace.stand_ins), or parameters of `run` (headrace.edsl_names).
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

from headrace.errors import nearest

_SAVED = "save(path) writes a .yaml or .json file, and load(path) reads it."
_SHOWN = "print() shows it; in a notebook, so does a cell that ends with it."
_NO_SERVICE = "It belongs to EDSL's service, and Headrace has none: a saved file or a run file can be passed on."
_KEPT = "Results are in their run file already, results.path: `headrace copy` copies it, Results.open(path) opens it."
_OF_MODELS = "Limits and keys belong to a model: Model(..., requests_per_minute=, api_key=)."
_IN_PANDAS = "Use pandas: to_pandas()."
_BY_AGG = 'agg(mean="mean(answer.rating)", n="count()") gives a table with a row for each group.'
_FROM_FILES = "Read the files in your program, and make the list of dicts: ScenarioList([{...}, ...])."

_OF_EVERYTHING = {
    **dict.fromkeys(("to_yaml", "from_yaml", "to_json", "save_json", "load_json"), _SAVED),
    **dict.fromkeys(("view", "html", "show", "rich_print", "to_html", "clipboard"), _SHOWN),
    **dict.fromkeys(
        ("share", "unshare", "git", "get_uuid", "get_metadata", "patch_metadata", "get_shared_users"), _NO_SERVICE
    ),
    "show_methods": "help(...) of its class lists them.",
    "duplicate": "copy.copy(...) of Python copies it.",
    "to_dataset": "Results have the verbs of a Dataset themselves.",
    "to_docx": 'select(...).print(format="markdown") gives text that a word processor reads.',
}
_WAYS: dict[str, dict[str, str]] = {
    "Survey": {
        **dict.fromkeys(
            ("next_question", "gen_path_through_survey", "dag", "draw"),
            "show_rules() lists the rules, show_flow() draws them, and prompts() shows what is asked.",
        ),
        **dict.fromkeys(("to_jobs", "get_job"), "by() makes a job of it."),
        **dict.fromkeys(("select", "subset"), 'survey[["q0", "q1"]] is a survey of these questions.'),
        **dict.fromkeys(("get", "question_names_to_questions"), 'survey["q0"] is a question by its name.'),
        **dict.fromkeys(
            ("move_question", "with_renamed_question", "with_edited_question", "rename"),
            "delete_question(name), and add_question(question, index=...) with the changed one.",
        ),
        "codebook": "{q.question_name: q.question_text for q in survey}",
        "duplicate": "copy() gives a survey of its own.",
        "run_async": "by() makes a job, which has run_async().",
        "using": _OF_MODELS,
    },
    "Question": {
        "add_question": "Survey([question, other]) asks both.",
        "to_jobs": "by() makes a job of it.",
        "run_async": "by() makes a job, which has run_async().",
        **dict.fromkeys(("skip_when", "jump_when"), "Survey.add_skip_rule and add_rule say when it is asked."),
        **dict.fromkeys(("save", "load"), "Save its survey: question.to_survey().save(path), Survey.load(path)."),
        **dict.fromkeys(("render", "prompt_preview", "get_instructions"), "prompts() shows what is sent."),
    },
    "Results": {
        **dict.fromkeys(("save", "load", "fetch", "fetch_remote"), _KEPT),
        "from_dict": "Results.from_edsl(data, path) makes a run file of EDSL's results.",
        **dict.fromkeys(
            ("task_history", "add_task_history_entry"),
            "failed() lists the questions without an answer and why, stats() what the run took.",
        ),
        **dict.fromkeys(
            ("cache", "relevant_cache", "initialize_cache_from_results"),
            "One response cache on this machine serves all runs.",
        ),
        **dict.fromkeys(
            ("report", "report_from_template", "q_and_a", "transcripts", "long_view"),
            'Make one of select(...).print(format="markdown"), or of to_dicts().',
        ),
        **dict.fromkeys(("chart", "ggplot2", "flatten", "unpack_list"), _IN_PANDAS),
        "compute_job_cost": "stats().cost is what it cost.",
        "num_observations": "len(results) is how many there are.",
        **dict.fromkeys(("keys", "all_keys", "show_columns"), "columns has the names."),
        "get_answers": 'select("q0").to_list() gives the answers to a question.',
        **dict.fromkeys(("append", "extend", "insert"), "results + others is a view of both."),
        "bucket_by": "filter(...) gives the interviews for which a condition holds; tally(...) counts values.",
    },
    "Tabular": {
        "groupby": 'group_by("agent.city").agg(mean="mean(answer.rating)")',
        **dict.fromkeys(
            ("value_counts", "nunique", "crosstab"), 'tally("answer.mood") counts values, the most frequent first.'
        ),
        **dict.fromkeys(
            ("sort_values", "sort_index", "sort", "nlargest", "nsmallest"), 'sort_by("agent.age", reverse=True)'
        ),
        **dict.fromkeys(("query", "where", "loc", "isin", "dropna"), 'filter("rating > 5 and mood is not None")'),
        **dict.fromkeys(
            ("agg", "mean", "sum", "median", "std", "min", "max", "describe", "info"),
            'group_by().agg(n="count(rating)", mean="mean(rating)", least="min(rating)") computes it of all rows.',
        ),
        **dict.fromkeys(
            ("merge", "concat"), 'join(other, on="agent.city") joins columns; results + others joins rows.'
        ),
        **dict.fromkeys(("melt", "stack"), "long() has a row for each interview and question."),
        **dict.fromkeys(("pivot", "pivot_table", "unstack"), 'wide("agent_name", "scenario.city", "rating")'),
        **dict.fromkeys(("drop_duplicates", "unique"), 'distinct("answer.mood") has each value once.'),
        **dict.fromkeys(("assign", "with_columns", "eval"), 'mutate("double = rating * 2")'),
        **dict.fromkeys(("iterrows", "itertuples", "items", "apply", "map"), "Iterate: for row in ...; or to_dicts()."),
        **dict.fromkeys(("iloc", "values"), "[0] is a row and [10:20] some of them; to_list() has all values."),
        **dict.fromkeys(("shape", "size", "dtypes"), "len(...) rows, .columns; to_pandas() has types."),
        **dict.fromkeys(("to_df", "to_dataframe"), _IN_PANDAS),
        **dict.fromkeys(
            ("to_json", "to_yaml"), "to_jsonl(path) writes a JSON object for each row; to_dicts() gives them."
        ),
    },
    "GroupBy": {
        **dict.fromkeys(("mean", "sum", "median", "min", "max", "std", "apply", "aggregate", "describe"), _BY_AGG),
        **dict.fromkeys(("size", "value_counts"), "count() says how many rows each group has."),
    },
    "Job": {
        "show_flow": "job.survey.show_flow() draws it.",
        **dict.fromkeys(("using", "using_key_lookup", "using_bucket_collection"), _OF_MODELS),
        **dict.fromkeys(("using_cache", "use_remote_cache"), "run(cache=False) does without the response cache."),
        **dict.fromkeys(
            ("to", "then"), "Run it, and give its results to the next: survey.by(results.to_scenario_list())"
        ),
        **dict.fromkeys(("compute_job_cost", "estimate_prompt_cost"), "estimate() says what it will cost."),
        "generate_interviews": "Interviews are made as they run; stream() gives each result as it completes.",
        "run_batch": "run() in a program, or `headrace run ...` in a terminal.",
    },
    "Agent": {
        **dict.fromkeys(("save", "load", "to_yaml", "from_yaml"), "Save a list: AgentList([agent]).save(path)."),
        **dict.fromkeys(("print", "table"), "AgentList([agent]).print() shows it as a table."),
    },
    "Scenario": {
        **dict.fromkeys(("save", "load", "to_yaml", "from_yaml"), "Save a list: ScenarioList([scenario]).save(path)."),
        **dict.fromkeys(("print", "table"), "ScenarioList([scenario]).print() shows it as a table."),
        **dict.fromkeys(("from_image", "from_pdf"), "Scenario.from_file(path, field_name=...)."),
        **dict.fromkeys(("from_url", "from_docx"), _FROM_FILES),
    },
    "FileStore": {
        **dict.fromkeys(
            ("base64_string", "write", "to_tempfile", "binary"),
            "It refers to a file and holds none of it: Path(file.path).read_bytes().",
        ),
        "view": "Open file.path with a program of yours.",
        **dict.fromkeys(("to_scenario", "to_dict"), 'Make it a field: Scenario({"photo": file}).'),
        **dict.fromkeys(("push", "pull"), "There is no hosted service here: embed=True keeps files in the run file."),
    },
    "RowList": {
        **dict.fromkeys(("columns", "dtypes"), "field_names has the names; to_pandas() has types."),
        "shape": "len(...) rows, field_names.",
        "describe": 'tally("city") counts values; to_pandas().describe() describes them.',
        **dict.fromkeys(("from_json", "from_tsv", "from_text"), "from_file(path) reads it, by the end of its name."),
        **dict.fromkeys(
            ("from_dicts", "from_records", "from_rows"),
            "ScenarioList(dicts) makes scenarios of dicts, AgentList.from_source(dicts) agents.",
        ),
        "from_dta": 'Read it with pandas: from_pandas(pandas.read_stata("people.dta")).',
        "uniquify": 'A list of scenarios has it: to_scenario_list().uniquify("name").',
        "from_urls": _FROM_FILES,
        **dict.fromkeys(("sql", "chart", "plot", "ggplot2", "pivot", "flatten"), _IN_PANDAS),
        **dict.fromkeys(
            ("join", "join_multiple"), 'inner_join(other, by="city"), left_join, right_join; again for a third.'
        ),
        **dict.fromkeys(("keys", "relevant_columns"), "The names of its fields: parameters, or trait_keys of agents."),
        "num_observations": "len(...) is how many there are.",
    },
}
# Names that EDSL's package has. Those that can be imported are not among them.
_NOT_IN_PACKAGE = {
    "QuestionBase": "Write Question, the class of all questions.",
    "LanguageModel": "Write Model; Model.from_function(function) is one of your own.",
    "Config": "Settings are parameters of run() and of Model.",
    "CONFIG": "Settings are parameters of run() and of Model.",
    "Prompt": "Write prompts as plain texts.",
    "CacheEntry": "One response cache on this machine serves all runs.",
    "Study": "Job.save(path) keeps a study, Job.load(path) reads it.",
}


def way_here(kind: type, name: str) -> str:
    """How to do here what EDSL's method of this name does; "" where nothing is known."""
    for base in kind.__mro__:
        if name in (ways := _WAYS.get(base.__name__, {})):
            return ways[name]
    return _OF_EVERYTHING.get(name, "")


def missing_attribute(held: object, name: str) -> AttributeError:
    """The error for an attribute that is not there. Cheap, for `hasattr` and `copy` ask too: Python itself looks for
    the nearest name, where it shows the error.
    """
    kind = type(held)
    if not name.startswith("_") and (way := way_here(kind, name)):
        return AttributeError(f"{kind.__name__}.{name} is not there in Headrace. {way}")
    return AttributeError(f"{kind.__name__!r} object has no attribute {name!r}", name=name, obj=held)


class ExplainedClass(type):
    """The class of classes whose missing names are answered too: `ScenarioList.from_json`."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> NoReturn:
            if not name.startswith("_") and (way := way_here(cls, name)):
                raise AttributeError(f"{cls.__name__}.{name} is not there in Headrace. {way}")
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}", name=name, obj=cls)


class ExplainedABC(ExplainedClass, ABCMeta):
    """The same of abstract classes."""


class ExplainedNames(metaclass=ExplainedClass):
    """An object whose missing names are answered with the way to do it here."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker should go on finding names that are not there

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_attribute(self, name)


def missing_import(name: str, known: Iterable[str]) -> Exception:
    """The error for a name that the package does not have.

    For what looks like a class it is an ImportError: `from headrace import ...` hides the text of any other.
    """
    if not name[:1].isupper():
        return AttributeError(f"module 'headrace' has no attribute {name!r}")
    way = _NOT_IN_PACKAGE.get(name) or nearest(name, known)
    return ImportError(f"headrace has no {name!r}. {way}", name="headrace")
