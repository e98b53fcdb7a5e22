"""The portable words in Spark's own: nothing else of a text changes."""

from __future__ import annotations

import re

import pytest

from adsbpc.engines import base
from adsbpc.engines.spark_functions import in_words_of_spark


def test_every_word_of_the_portable_sql_has_one_of_spark() -> None:
    """Those that the first lines of `engines.base` list."""
    assert base.__doc__ is not None
    named = set(re.findall(r"^ {4}(\w+)\(|, (\w+)\(x\)", base.__doc__, re.MULTILINE))
    words = {first or second for first, second in named}
    assert {"whole_div", "wide", "high", "low", "fingerprint"} <= words
    for word in words:
        assert not re.search(rf"\b{word}\(", in_words_of_spark(f"SELECT {word}(a, b)"))


def test_calls_inside_of_calls_are_written_out() -> None:
    assert in_words_of_spark("whole_div(wide((a + 1) * f(b, c)), 2)") == (
        "CAST(CAST(CAST((a + 1) * f(b, c) AS DECIMAL(38, 0)) AS BIGINT)"
        " div CAST(2 AS BIGINT) AS BIGINT)"
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'wide(1)' AS x, \"low(2)\", `high(3)`",
        "SELECT 'it''s wide(1), (' || chr(92) || ')'",
        "SELECT allow(x), worldwide(x), t.wide, wide FROM (VALUES (1, 2)) AS t (wide, b)",
        "SELECT ')', \"(\"",
    ],
)
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert in_words_of_spark(text) == text
