"""The program as people run it: real processes, exit codes, results apart from notes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.core import TyperGroup
from typer.main import get_command

from adsbpc import Campaign
from adsbpc.cli.main import _prepared, app
from tests.attribution.test_engines_agree import crowd
from tests.campaign.files import write_campaign
from tests.cli.program import adsbpc, in_a_process
from tests.worlds import World

CAMPAIGN = """
[campaign]
name = "test"
advertiser = "Ad-1"
start = 2026-03-27
slots = 5
timezone = "Europe/Berlin"
publishers = ["P-1", "P-2"]

[events]
impressions = "impressions.parquet"
conversions = "conversions.parquet"
engine = "{engine}"

[attribution]
model = "uniform"
view_lookback = "2d"

[engine.options]
{options}
"""


@pytest.fixture
def campaign(tmp_path: Path) -> World:
    impressions, conversions = crowd()
    world = World(impressions, conversions, attribution={"model": "uniform", "view_lookback": "2d"})
    world.write(tmp_path)
    (tmp_path / "campaign.toml").write_text(CAMPAIGN.format(engine="duckdb", options=""))
    return world


def check_credits(path: Path, world: World, directory: Path) -> None:
    table = pq.read_table(path)
    assert table.column_names == ["user_id", "conversion_id", "slot", "publisher_id", "credit"]
    found = sorted(tuple(row.values()) for row in table.to_pylist())
    assert found == [
        (
            c.user_id,
            c.conversion_id,
            c.slot,
            c.publisher_id,
            c.credit_units * 2**40 // 720720 / 2**40,
        )
        for c in world.reference(directory)
    ]
    sums: dict[tuple[str, str], float] = {}
    for user, conversion, _, _, credit in found:
        sums[(user, conversion)] = sums.get((user, conversion), 0.0) + credit
    assert max(sums.values()) <= 1


def test_attribute(campaign: World, tmp_path: Path) -> None:
    done = adsbpc("attribute", "campaign.toml", "--out", "credits.parquet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    check_credits(tmp_path / "credits.parquet", campaign, tmp_path)
    assert "personal data" in done.stdout


@pytest.mark.spark
def test_attribute_on_spark(campaign: World, tmp_path: Path) -> None:
    options = '"spark.master" = "local[2]"\n"spark.sql.shuffle.partitions" = 2'
    (tmp_path / "campaign.toml").write_text(CAMPAIGN.format(engine="spark", options=options))
    done = adsbpc("attribute", "campaign.toml", "--out", "credits.parquet", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["personal_data"] is True
    check_credits(tmp_path / "credits.parquet", campaign, tmp_path)


def test_attribute_as_json_with_quarantine(campaign: World, tmp_path: Path) -> None:
    text = (tmp_path / "campaign.toml").read_text()
    (tmp_path / "campaign.toml").write_text(
        text.replace('conversions = "', 'max_lateness = "10h"\nconversions = "')
    )
    done = adsbpc(
        "attribute", "campaign.toml", "--out", "credits.parquet", "--json",
        "--quarantine", "bad.parquet", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    late = sum(c.arrived_us - c.time_us > 36_000_000_000 for c in campaign.conversions)
    assert summary["quarantined"] == [
        {"source": "conversions", "reason": "arrives later than max_lateness", "rows": late}
    ]
    assert pq.read_table(tmp_path / "bad.parquet").num_rows == late
    assert summary["credits"] == pq.read_table(tmp_path / "credits.parquet").num_rows


def test_bad_campaign_file_exits_2(campaign: World, tmp_path: Path) -> None:
    (tmp_path / "campaign.toml").write_text("[campain]\n")
    done = adsbpc("attribute", "campaign.toml", "--out", "x.parquet", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'Did you mean "campaign"?' in done.stderr


def test_bad_events_exit_1_and_leave_no_file(campaign: World, tmp_path: Path) -> None:
    (tmp_path / "conversions.parquet").write_bytes(b"nonsense")
    done = adsbpc("attribute", "campaign.toml", "--out", "x.parquet", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "conversions.parquet: found" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "x.parquet").exists()


def test_a_missing_folder_for_the_result(campaign: World, tmp_path: Path) -> None:
    done = adsbpc("attribute", "campaign.toml", "--out", "no/where.parquet", cwd=tmp_path)
    assert done.returncode == 2
    assert "does not exist. Create it first" in done.stderr


@pytest.mark.every_change
@pytest.mark.spark
def test_spark_options_that_do_not_start(campaign: World, tmp_path: Path) -> None:
    options = '"spark.master" = "bogus"'
    (tmp_path / "campaign.toml").write_text(CAMPAIGN.format(engine="spark", options=options))
    # Its own process: options are for a JVM that does not run yet.
    done = in_a_process("attribute", "campaign.toml", "--out", "credits.parquet", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "[engine.options]: Spark does not start with them" in done.stderr


def test_events_are_never_written_over(campaign: World, tmp_path: Path) -> None:
    before = (tmp_path / "impressions.parquet").read_bytes()
    for arguments, message in (
        (("--out", "impressions.parquet"), "is a file of events"),
        (("--out", "adsbpc-ledger.sqlite"), "is the ledger"),
        (("--out", "x.parquet", "--quarantine", "x.parquet"), "is asked for twice"),
        (("--out", "."), "is a folder"),
        (("--out", "/"), "is a folder"),
    ):
        done = adsbpc("attribute", "campaign.toml", *arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
    assert (tmp_path / "impressions.parquet").read_bytes() == before


def test_a_name_that_cannot_be_written(campaign: World, tmp_path: Path) -> None:
    done = adsbpc("attribute", "campaign.toml", "--out", "x" * 250, cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_demo_in_odd_places(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = adsbpc("demo", "--directory", "taken", "--users", 50, cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot be made a folder" in done.stderr
    done = adsbpc("demo", "--directory", "it's", "--users", 50, "--slots", 3, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_bad_usage_exits_2(tmp_path: Path) -> None:
    assert adsbpc("attribute", cwd=tmp_path).returncode == 2
    assert in_a_process("no-such-command", cwd=tmp_path).returncode == 2


def test_demo(tmp_path: Path) -> None:
    done = adsbpc("demo", "--directory", "d", "--users", 2_000, "--slots", 7, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"after\s+day 7 of 7", done.stdout)
    assert re.search(r"search .* to .* \d+", done.stdout)
    assert "truth" in done.stdout
    assert "Budget of the campaign: 1 of rho = 1 spent, 0 left." in done.stdout
    assert (tmp_path / "d" / "report.html").stat().st_size > 500_000


def test_demo_replaces_a_demo_and_nothing_else(tmp_path: Path) -> None:
    arguments = ("demo", "--directory", "d", "--users", 200, "--slots", 2, "--json")
    first, second = (json.loads(adsbpc(*arguments, cwd=tmp_path).stdout) for _ in range(2))
    assert first["releases"] != second["releases"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "impressions.parquet").write_text("mine")
    (tmp_path / "d" / "other.toml").write_text("")
    for folder in ("mine", "d"):
        before = {file.name: file.stat().st_mtime for file in (tmp_path / folder).iterdir()}
        done = adsbpc("demo", "--directory", folder, "--users", 200, cwd=tmp_path)
        assert done.returncode == 2
        assert "holds other things than a demo" in done.stderr
        assert before == {file.name: file.stat().st_mtime for file in (tmp_path / folder).iterdir()}


@pytest.mark.slow
def test_demo_has_the_same_people_and_other_noise_every_time(tmp_path: Path) -> None:
    runs = [
        adsbpc("demo", "--directory", d, "--users", 2_000, "--slots", 7, "--json", cwd=tmp_path)
        for d in ("a", "b")
    ]
    first, second = (json.loads(run.stdout) for run in runs)
    assert first["truth"] == second["truth"]
    assert first["releases"] != second["releases"]
    assert [release["slot"] for release in first["releases"]] == list(range(1, 8))
    for release in first["releases"]:
        for measured in release["measures"]:
            assert measured["randomness"] == "opendp"
            # Everything, publishers, cells; two more count what was cut.
            others = len(measured["dimensions"][1]["values"])
            assert len(measured["values"]) == 1 + len(first["publishers"]) * (1 + others) + 2
    spent = sum(c["rho"] for release in first["releases"] for c in release["charges"])
    assert 0.999 < spent <= 1


def test_demo_refuses_an_unknown_model(tmp_path: Path) -> None:
    done = adsbpc("demo", "--model", "unifrom", cwd=tmp_path)
    assert done.returncode == 2
    assert 'Did you mean "uniform"?' in done.stderr


PRIVATE = """
[privacy]
rho = 1.0
adjacency = "substitute"

[privacy.adsbpc]
bounds = "svt"
quantile_slots = 3

[[workload]]
queries = "prefix"
weights = [1, 1, 1, 1, 7]

[[workload]]
queries = "sliding"
window = 2
"""


def test_budget(tmp_path: Path) -> None:
    done = adsbpc("budget", "--rho", 1, "--delta", "1e-6", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert round(found.pop("epsilon"), 3) == 7.766
    assert found == {"rho": 1.0, "delta": 1e-6, "conversion": "zcdp"}
    assert "epsilon = 10.6072" in adsbpc("budget", "--rho", 1.7, cwd=tmp_path).stdout
    tight = adsbpc("budget", "--rho", 1, "--gaussian", "--json", cwd=tmp_path)
    assert round(json.loads(tight.stdout)["epsilon"], 3) == 7.286
    back = adsbpc("budget", "--epsilon", 7.7662166, "--delta", "1e-6", "--json", cwd=tmp_path)
    assert round(json.loads(back.stdout)["rho"], 6) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --rho or --epsilon"),
        (("--rho", 1, "--epsilon", 1), "give --rho or --epsilon"),
        (("--rho", 0), "rho = 0.0: expected a number above 0"),
        (("--rho", 1, "--delta", 1), "delta = 1.0: expected a number between 0 and 1"),
        (("--epsilon", -1), "epsilon = -1.0: expected a number above 0"),
        (("--epsilon", 1, "--gaussian"), "--gaussian goes with --rho"),
    ],
)
def test_bad_budgets(arguments: tuple[object, ...], message: str, tmp_path: Path) -> None:
    done = adsbpc("budget", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def plan(tmp_path: Path, text: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    campaign = CAMPAIGN.format(engine="duckdb", options="")
    (tmp_path / "campaign.toml").write_text(campaign + text)
    return adsbpc("plan", "campaign.toml", *arguments, cwd=tmp_path)


def test_plan_needs_no_data(tmp_path: Path) -> None:
    found = json.loads(plan(tmp_path, PRIVATE, "--json").stdout)
    assert round(found["guarantee"].pop("epsilon"), 3) == 7.766
    assert round(found["guarantee"].pop("scope_epsilon"), 3) == 7.766
    assert found["guarantee"] == {
        "unit": "user", "adjacency": "substitute", "rho": 1.0, "delta": 1e-6, "scope": "default",
        "scope_rho": 1.0,
    }  # fmt: skip
    assert found["split"] == {"measurement": 0.7, "quantile": 0.15, "sparse vector": 0.15}
    assert [(q["slot"], q["query"]) for q in found["queries"][:2]] == [
        (1, "prefix 1..1"),
        (2, "prefix 1..2"),
    ]
    assert len(found["queries"]) == 2 * 10
    assert {(q["measure"], q["view"]) for q in found["queries"]} == {
        ("conversions", "total"),
        ("conversions", "publisher"),
    }
    doubled = json.loads(plan(tmp_path, PRIVATE, "--json", "--bound", 2).stdout)
    for one, two in zip(found["queries"], doubled["queries"], strict=True):
        assert two["standard_error"] == pytest.approx(2 * one["standard_error"])
    table = plan(tmp_path, PRIVATE)
    assert "rho = 1 zCDP for one user (substitute)" in table.stdout
    assert "window 4..5" in table.stdout


def test_plan_from_epsilon(tmp_path: Path) -> None:
    text = "[privacy]\nepsilon = 7.7662166\ndelta = 1e-6\n"
    found = json.loads(plan(tmp_path, text, "--json").stdout)
    assert round(found["guarantee"]["rho"], 5) == 1.0
    assert found["bounds"] == "histogram"


def test_plan_says_what_variance_targets_need(tmp_path: Path) -> None:
    text = (
        "[privacy]\nrho = 1\n[privacy.adsbpc]\nbounds = 'fixed'\nbound = 2\n"
        "[[workload]]\nqueries = 'slot'\nobjective = 'variance-targets'\n"
        "targets = [4, 4, 4, 4, 8]\n"
    )
    found = json.loads(plan(tmp_path, text, "--json").stdout)
    assert found["rho_for_targets"] == pytest.approx(4 * (4 / 8 + 1 / 16), rel=1e-4)
    assert "The variance targets need rho = 2.25" in plan(tmp_path, text).stdout


def test_rounding_never_flatters(tmp_path: Path) -> None:
    assert "epsilon = 7.76622" in adsbpc("budget", "--rho", 1, cwd=tmp_path).stdout
    assert "rho = 1.05235 " in adsbpc("budget", "--epsilon", 8, cwd=tmp_path).stdout
    assert "(epsilon = 0)" not in adsbpc("budget", "--rho", 1e-9, cwd=tmp_path).stdout


BAD_PLANS = [
    ("", "has no [privacy] section"),
    ("[privacy]\n", "give either rho, or epsilon and delta"),
    ("[privacy]\nrho = 1\nepsilon = 1\n", "give either rho, or epsilon and delta"),
    ("[privacy]\nepsilon = 1\n", "epsilon needs delta"),
    ("[privacy]\nrho = 0\n", "[privacy] rho = 0: "),
    ("[privacy]\nrho = 1e308\n", "[privacy] rho = 1e+308: "),
    ("[privacy]\nrho = 1\n[privacy.adsbpc]\nshares = [1e-10, 0.5, 0.5]\n", "shares"),
    ("[privacy]\nrho = 1\n[privacy.adsbpc]\nquantile = 1e-19\n", "at most six decimals"),
    ("[privacy]\nrho = 1\n[[workload]]\nweights = [1e200, 1, 1, 1, 1]\n", "weights"),
    ("[privacy]\nrho = 1\n[[workload]]\n[[workload]]\nweights = [1]\n", "workload 2 sets weights"),
    ("[privacy]\nrho = 1\n[[workload]]\n[[workload]]\n", "two workloads answer 'prefix 1..1'"),
    ("[privacy]\nrho = 1\ndelta = 2.0\n", "[privacy] delta = 2.0: "),
    ("[privacy]\nrho = 1\nadjacency = 'swap'\n", "[privacy] adjacency = 'swap': "),
    ("[privacy]\nrho = 1\n[privacy.adsbpc]\nbound = 3\n", 'belongs to bounds = "fixed"'),
    ("[privacy]\nrho = 1\n[privacy.adsbpc]\nshares = [1, 1, 1]\n", "shares add up to 3"),
    ("[privacy]\nrho = 1\n[privacy.adsbpc]\nboundss = 3\n", 'Did you mean "bounds"?'),
    ("[privacy]\nrho = 1\n[[workload]]\nwindow = 3\n", 'window belongs to queries = "sliding"'),
    ("[privacy]\nrho = 1\n[[workload]]\nqueries = 'sliding'\n", "needs window"),
    ("[privacy]\nrho = 1\n[[workload]]\nqueris = 'slot'\n", 'Did you mean "queries"?'),
    ("[privacy]\nrho = 1\n[[workload]]\nweights = [1, 2]\n", "weights has 2 entries: expected 5"),
    ("[privacy]\nrho = 1\n[[workload]]\nqueries = 'matrix'\nmatrix = 'no.csv'\n", "no.csv"),
    (
        "[privacy]\nrho = 1\n[[workload]]\nobjective = 'variance-targets'\ntargets = [0, 1]\n",
        "[workload.0.targets] 0 = 0: ",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD_PLANS)
def test_bad_plans(text: str, message: str, tmp_path: Path) -> None:
    done = plan(tmp_path, text)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert message in done.stderr


# What the fast commands may load that is neither Python's own nor ours.
FRONT = {"adsbpc", "annotated_doc", "rich", "shellingham", "typer"}
LEDGER = {"annotated_types", "pydantic", "pydantic_core", "sqlalchemy", "typing_inspection"}
# What an environment adds to every start, and what compiled extensions leave behind.
SURROUNDINGS = ("__", "_cython", "_distutils", "_sysconfig", "_virtualenv", "cython_runtime")


def loaded_by(*arguments: str, cwd: Path) -> tuple[set[str], str]:
    """The modules that a command loads, but for Python's own, and what it prints."""
    code = (
        "import sys; from adsbpc.cli.main import main\n"
        f"sys.argv = ['adsbpc', *{arguments}]\n"
        "try: main()\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=cwd
    )
    own = sys.stdlib_module_names | {"typing_extensions"}
    loaded = {name for name in done.stderr.split() if name.split(".")[0] not in own}
    return {name for name in loaded if not name.startswith(SURROUNDINGS)}, done.stdout


def packages_of(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


def test_only_what_is_named_is_prepared_and_everything_if_nothing_is() -> None:
    known = get_command(app)
    assert isinstance(known, TyperGroup)
    for word in (*known.commands, "stats", "--help", ""):
        with _prepared(word):
            prepared = get_command(app)
        assert isinstance(prepared, TyperGroup)
        assert set(prepared.commands) == ({word} & set(known.commands) or set(known.commands))
    after = get_command(app)
    assert isinstance(after, TyperGroup)
    assert after.commands.keys() == known.commands.keys()


def test_help_and_version_load_nothing_heavy(tmp_path: Path) -> None:
    loaded, said = loaded_by("--help", cwd=tmp_path)
    assert packages_of(loaded) <= FRONT
    commands = ("attribute", "budget", "demo", "init", "plan", "release", "report", "status")
    for command in commands:
        assert command in said
    assert in_a_process("--version", cwd=tmp_path).stdout.startswith("adsbpc ")


@pytest.mark.parametrize("words", [(), ("keys",), ("campaigns",), ("lab",), ("lift",)])
def test_summaries_of_commands_fit_a_line(words: tuple[str, ...], tmp_path: Path) -> None:
    listed = adsbpc(*words, "--help", cwd=tmp_path).stdout.split("Commands:")[1]
    assert len(listed.splitlines()) > 2
    assert "..." not in listed


def test_status_loads_nothing_heavy(tmp_path: Path) -> None:
    """It is asked often, and answered from the ledger alone."""
    Campaign.load(write_campaign(tmp_path)).release(1)
    loaded, said = loaded_by("status", "spring.toml", cwd=tmp_path)
    assert "1 of 5 slots" in said
    assert packages_of(loaded) <= FRONT | LEDGER
    # Of a library or a room that is needed, the parts that are not.
    for part in ("sqlalchemy.orm", "sqlalchemy.dialects.postgresql", "adsbpc.mechanisms.interface"):
        assert part not in loaded
    assert {name for name in loaded if name.startswith("adsbpc.privacy.")} <= {
        "adsbpc.privacy.accounting"
    }
