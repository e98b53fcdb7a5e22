"""The texts of attribution in BigQuery's dialect: parsed, resolved against the types of our tables,
and every comparison and sum of them between types that go together. Nothing is executed there."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from tests.attribution.test_sql_snapshots import MODELS, text_of

DIALECT = "bigquery"
WHOLE, TEXT, NUMBER, TRUTH = "INT64", "STRING", "FLOAT64", "BOOL"
SCHEMA: dict[str, dict[str, str]] = {
    "clean_conversions": {
        "conversion_key": WHOLE, "user_id": TEXT, "conversion_number": WHOLE,
        "conversion_id": TEXT, "slot": WHOLE, "time_us": WHOLE, "value": NUMBER,
    },
    "clean_impressions": {
        "user_id": TEXT, "time_us": WHOLE, "is_click": TRUTH, "publisher_number": WHOLE,
        "touch_order": WHOLE,
    },
    "publisher_names": {
        "publisher_number": WHOLE, "publisher_id": TEXT, "publisher_index": WHOLE,
    },
}  # fmt: skip
# The vocabulary that the portable texts use, as BigQuery defines functions of one's own.
VOCABULARY = {"WHOLE_DIV": "CREATE TEMP FUNCTION whole_div(a INT64, b INT64) AS (DIV(a, b))"}
# Models without tables of parameters, whose types follow from what was fitted.
PLAIN = ("last_touch", "first_touch", "uniform", "time_decay", "position", "shapley_path")

_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_COMPUTED = (exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod)


def _built_in(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and node.name.upper() in VOCABULARY:
        return exp.IntDiv(this=node.expressions[0], expression=node.expressions[1])
    return node


def problems(text: str, tables: dict[str, dict[str, str]]) -> list[str]:
    """Operations on types that do not go together, and columns whose type is not known."""
    (translated,) = sqlglot.transpile(text, read="duckdb", write=DIALECT)
    schema: dict[str, object] = {**tables}
    parsed = sqlglot.parse_one(translated, read=DIALECT).transform(_built_in)
    typed = annotate_types(
        qualify(parsed, schema=schema, dialect=DIALECT, quote_identifiers=False),
        schema=schema,
        dialect=DIALECT,
    )
    assert isinstance(typed, exp.Query)
    found = [
        f"{node.sql(DIALECT)}: {_family(node.left)} beside {_family(node.right)}"
        for node in typed.find_all(*_COMPARED, *_COMPUTED)
        if "unknown" not in (_family(node.left), _family(node.right))
        and _family(node.left) != _family(node.right)
    ]
    found += [
        f"{each.alias_or_name}: type unknown"
        for each in typed.selects
        if _family(each) == "unknown"
    ]
    unknown = {
        node.name for node in typed.find_all(exp.Anonymous) if node.name.upper() not in VOCABULARY
    }
    return found + [f"{name}: no function of BigQuery" for name in sorted(unknown)]


def _family(node: exp.Expr) -> str:
    kind = node.type
    if kind is None or kind.is_type(exp.DataType.Type.UNKNOWN, exp.DataType.Type.NULL):
        return "unknown"
    if kind.is_type(*exp.DataType.NUMERIC_TYPES):
        return "number"
    return "text" if kind.is_type(*exp.DataType.TEXT_TYPES) else str(kind.this.value).lower()


@pytest.mark.parametrize("name", PLAIN)
def test_types_go_together(name: str) -> None:
    assert problems(text_of(MODELS[name]), SCHEMA) == []


def test_a_type_that_does_not_fit_is_found() -> None:
    """Users as numbers in one table and as texts in the other."""
    wrong = {
        **SCHEMA,
        "clean_impressions": {**SCHEMA["clean_impressions"], "user_id": WHOLE, "time_us": TEXT},
    }
    found = problems(text_of(MODELS["uniform"]), wrong)
    assert any("user_id" in each for each in found)
    assert any("time_us" in each for each in found)


def test_a_column_that_is_not_there_is_found() -> None:
    fewer = {**SCHEMA, "publisher_names": {"publisher_number": WHOLE, "publisher_id": TEXT}}
    with pytest.raises(sqlglot.errors.OptimizeError, match="publisher_index"):
        problems(text_of(MODELS["uniform"]), fewer)


def test_the_vocabulary_is_bigquerys() -> None:
    for text in VOCABULARY.values():
        assert isinstance(sqlglot.parse_one(text, read=DIALECT), exp.Create)
