"""One function for arms, the same in Python, SQL on both engines and JavaScript."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from adsbpc.engines import Engine
from adsbpc.errors import SpecError
from adsbpc.events.arms import Dialect, assignment_javascript, assignment_sql
from adsbpc.model.arms import KeyedArms, limits_of, place_of

KEY, OTHER_KEY = "0123456789abcdef" * 4, "f" * 64
SHARES = {"treatment": 0.6, "half dose": 0.2, "control": 0.1}
FALSE_ALARM = 1e-8


def odd_ids(count: int) -> list[str]:
    """Quotes, spaces, signs of SQL, several scripts, characters of four bytes, combining marks."""
    signs = "aZ09 _-'\"\\;%:$\t\u00a0äßñçée\u0301Жあ漢ﷺ\U0001f600\U0001d11e\u200d\ufeff"
    rng, found = random.Random(7), dict[str, None]()
    while len(found) < count:
        found["".join(rng.choices(signs, k=rng.randint(1, 24)))] = None
    return list(found)


def test_arms_are_as_large_as_their_shares() -> None:
    """Chi-square over a million ids."""
    arms = KeyedArms.of(KEY, SHARES)
    names = [*SHARES, "other"]
    found = dict.fromkeys(names, 0)
    for number in range(1_000_000):
        found[arms.arm_of(number)] += 1
    expected = [1_000_000 * share for share in (0.6, 0.2, 0.1, 0.1)]
    statistic = sum((found[n] - e) ** 2 / e for n, e in zip(names, expected, strict=True))
    assert statistic < stats.chi2.isf(FALSE_ALARM, 3)


def test_arms_of_two_keys_have_nothing_to_do_with_one_another() -> None:
    one, other = (KeyedArms.of(key, SHARES) for key in (KEY, OTHER_KEY))
    names = [*SHARES, "other"]
    table = np.zeros((4, 4))
    for number in range(200_000):
        user = f"user-{number}"
        table[names.index(one.arm_of(user)), names.index(other.arm_of(user))] += 1
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


def test_sql_agrees_with_python(engine: Engine, tmp_path: Path) -> None:
    """The expression that people run in their own queries, with the key as a parameter."""
    users = odd_ids(10_000)
    pq.write_table(pa.table({"user_id": users}), tmp_path / "users.parquet")
    rows = engine.read_files(
        "users", "parquet", [str(tmp_path / "users.parquet")], None, ["user_id"]
    )
    dialect: Dialect = "spark" if engine.name == "spark" else "duckdb"
    text = assignment_sql(limits_of(SHARES), dialect)
    text = text.replace(":key" if dialect == "spark" else "$key", f"'{KEY}'")
    found = dict(engine.rows("arms", f"SELECT user_id, {text} FROM {rows}"))
    arms = KeyedArms.of(KEY, SHARES)
    assert found == {user: arms.arm_of(user) for user in users}


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript_agrees_with_python(tmp_path: Path) -> None:
    users = odd_ids(10_000)
    (tmp_path / "arms.mjs").write_text(assignment_javascript(limits_of(SHARES)), encoding="utf-8")
    (tmp_path / "users.json").write_text(json.dumps(users))
    (tmp_path / "run.mjs").write_text(
        f"""import {{ armOf }} from "./arms.mjs";
import {{ readFileSync }} from "node:fs";
const users = JSON.parse(readFileSync("users.json", "utf8"));
const limits = {json.dumps(limits_of(SHARES))};
const found = [];
for (const user of users) found.push(await armOf("{KEY}", user, limits));
console.log(JSON.stringify(found));
"""
    )
    done = subprocess.run(
        ["node", "run.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    arms = KeyedArms.of(KEY, SHARES)
    assert json.loads(done.stdout) == [arms.arm_of(user) for user in users]


def test_the_vectors_of_the_document_hold() -> None:
    text = (Path(__file__).parents[2] / "docs" / "lift.md").read_text(encoding="utf-8")
    vectors = re.findall(
        r"^\| `([0-9a-f]+)` \| `(.+)` \| `([0-9a-f]{13})` \| (\w+) \|$", text, re.M
    )
    assert len(vectors) >= 10, "the document has no vectors: this tests nothing"
    for part, user, place, arm in vectors:
        key = (part * 64)[:64]
        arms = KeyedArms.of(key, {"treatment": 0.5, "control": 0.5})
        assert (place_of(key, user), arms.arm_of(user)) == (place, arm)


def test_ranges_end_where_shares_do() -> None:
    assert limits_of({"a": 0.1, "b": 0.9}) == (("a", "1999999999999"), ("b", "g"))
    assert limits_of({"a": 0.5, "b": 0.25}) == (
        ("a", "8000000000000"),
        ("b", "c000000000000"),
    )
    with pytest.raises(SpecError, match="64 hexadecimal digits"):
        KeyedArms.of("secret", SHARES)
