"""One language for skip rules, filters and `where`: Python's syntax, never Python's `eval`.

Covers: reading an expression (`parse`), running it on a row (`compile_closure`) and, where that is exact,
in SQLite (`compile_sql`). Does not cover: what a name stands for (the caller's `resolve` and `column`), nor
rendering prompts (`survey`).

What can be written: dotted names, also as `{{ mood.answer }}`, and `scenario["Review Text"]` for a name with a space;
items, `brands.answer[0]`; None, True, False, numbers, texts, and lists
of these; `and or not`, `== != < <= > >=` (chained too), `in`, `not in`, `is None`, `is not None`,
`+ - * / // %`, `a if c else b`; the functions abs, contains, endswith, float, int, len, lower, round,
startswith, str, strip, upper; and five of these as methods of a text: `mood.answer.startswith('G')`.

One meaning, in a closure and in SQL:

- Equality is Python's: `None == None`, `True == 1`, and a text never equals a number.
- An order exists among numbers and among texts (by code point). `<` and its kin are False for anything else,
  None and NaN included, so `not (x < 5)` is True when x is None.
- Arithmetic gives None for None, for unsuitable types, on division by zero and where the result would be
  NaN. Integers stay exact within 64 bits; beyond, the operation is done on floats. `/` always is. `+` also
  joins two texts.
- `and`, `or`, `not` give True or False. False are None, 0, and empty texts, lists and dicts; NaN is true.
- `in` looks for an item of a list, a key of a dict or a part of a text, and is False for anything else.
- An item is None where the list, text or dict has none.
- A function gives None where its argument does not suit it; contains, startswith and endswith give False.
- No value of a row makes an expression fail.
"""

from headrace.expressions.closures import compile_closure, truth
from headrace.expressions.meaning import Value, is_true
from headrace.expressions.nodes import Expression
from headrace.expressions.outer_calls import OuterCall, parse_call
from headrace.expressions.sql import Column, ColumnKind, Sql, SqlTerm, compile_sql, compile_value
from headrace.expressions.syntax import parse

__all__ = [
    "Column",
    "ColumnKind",
    "Expression",
    "OuterCall",
    "Sql",
    "SqlTerm",
    "Value",
    "compile_closure",
    "compile_sql",
    "compile_value",
    "is_true",
    "parse",
    "parse_call",
    "truth",
]
