"""`adsbpc lab`: comparisons and a small reproduction, as people run them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.cli.program import adsbpc, in_a_process

COLUMNS = {
    "dataset", "mechanism", "adjacency", "rho", "wrmse", "wrmse_stderr", "bias", "noise",
    "max_variance", "seconds",
}  # fmt: skip


def test_compare(tmp_path: Path) -> None:
    done = adsbpc(
        "lab", "compare", "--datasets", "facebook,criteo", "--mechanisms", "ipa,adsbpc",
        "--rho", "1,2", "--slots", 5, "--users", 2_000, "--trials", 2, "--seed", 3, "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) == 2 * 2 * 2 * 2
    for row in rows:
        assert row.keys() >= COLUMNS
    assert [(row["dataset"], row["rho"], row["view"]) for row in rows[:5]] == [
        ("facebook", 1.0, "publisher"), ("facebook", 1.0, "total"), ("facebook", 1.0, "publisher"),
        ("facebook", 1.0, "total"), ("facebook", 2.0, "publisher"),
    ]  # fmt: skip


def test_compare_shows_every_view(tmp_path: Path) -> None:
    options = (
        "--datasets", "countries", "--mechanisms", "personal-budget,personal-budget-views",
        "--allowance", 1.5, "--slots", 2, "--users", 500, "--trials", 2,
    )  # fmt: skip
    done = adsbpc("lab", "compare", *options, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(row["mechanism"], row["view"]) for row in rows] == [
        (mechanism, view)
        for mechanism in ("personal-budget", "personal-budget-views")
        for view in ("publisher x country", "publisher", "total")
    ]
    errors = {(row["mechanism"], row["view"]): row["wrmse"] for row in rows}
    # Sums of cells are far off, unless they have columns of their own.
    for view in ("publisher", "total"):
        assert errors["personal-budget-views", view] < errors["personal-budget", view] / 2


def test_compare_own_data_with_a_plot(tmp_path: Path) -> None:
    lines = ["user_id,slot,publisher_id,weight"]
    lines += [f"u{k % 30},{1 + k % 4},P-{k % 2},1" for k in range(120)]
    (tmp_path / "own.csv").write_text("\n".join(lines))
    done = adsbpc(
        "lab", "compare", "--data", "own.csv", "--mechanisms", "umm,adsbpc-oracle", "--plot",
        "figure", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "umm" in done.stdout
    assert "not private: its bound is read from the data" in done.stdout
    told = " ".join(done.stdout.split())
    assert "read off this very data" in told
    assert "error, bias and noise of one publisher's figure, in conversions" in told
    assert (tmp_path / "figure.svg").read_text().startswith("<svg")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "--datasets", "facebok"), 'Did you mean "facebook"?'),
        (("compare", "--mechanisms", "adsbcp"), 'Did you mean "adsbpc"?'),
        (("compare", "--datasets", ""), "expected at least one of each"),
        (("compare", "--rho", ","), "expected at least one of each"),
        (("compare", "--data", "x.csv", "--datasets", "zipf"), "--data stands for itself"),
        (("compare", "--largest-user", "3"), "--largest-user belongs to --data"),
        (("compare", "--queries", "prefxi"), "expected one of prefix, end, sliding, slot"),
        (("compare", "--adjacency", "swap"), "expected add-remove or substitute"),
        (("compare", "--rho", "none"), "rho = none: expected a number above 0"),
        (("compare", "--allowance", "2", "--mechanisms", "ipa"), "--allowance 2 is of personal"),
        (("reproduce", "prefxi"), 'Did you mean "prefix"?'),
    ],
)
def test_bad_input(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = adsbpc("lab", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert message in done.stderr


def test_missing_own_data(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("user_id,slot\nu,1\n")
    for name in ("no.parquet", "bad.csv"):
        done = adsbpc("lab", "compare", "--data", name, "--jobs", 2, cwd=tmp_path)
        assert done.returncode == 1
        assert name in done.stderr
        assert "Traceback" not in done.stderr


def test_datasets(tmp_path: Path) -> None:
    found = json.loads(adsbpc("lab", "datasets", "--json", cwd=tmp_path).stdout)
    assert {"zipf", "normal", "uniform", "criteo", "facebook"} <= set(found["datasets"])
    names = {"ipa", "bin", "stream", "umm", "mmbpc", "adsbpc-published", "adsbpc", "adsbpc-oracle"}
    assert names <= set(found["mechanisms"])
    assert "criteo-uniform" in adsbpc("lab", "datasets", cwd=tmp_path).stdout


@pytest.mark.slow
def test_a_small_reproduction_of_everything(tmp_path: Path) -> None:
    arguments = (
        "lab", "reproduce", "--trials", 1, "--users", 100, "--criteo-users", 300, "--out", "out",
        "--page", "page.md", "--json",
    )  # fmt: skip
    # Its own process, as it starts others.
    done = in_a_process(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "100 people here instead of 1,000,000" in done.stderr.replace("\n", " ")
    rows = json.loads(done.stdout)
    prefix = [row for row in rows if row.get("experiment") == "prefix"]
    assert {row["dataset"] for row in prefix} >= {"zipf", "criteo-first", "facebook"}
    assert any(row["published"] == 18.23 for row in prefix)
    page = (tmp_path / "page.md").read_text()
    for name in ("prefix", "sliding", "budgets", "days", "n365", "time", "constant-bound"):
        assert f"](out/{name}.svg)" in page
        assert (tmp_path / "out" / f"{name}.svg").exists()
        assert (tmp_path / "out" / f"{name}.png").exists()
        with (tmp_path / "out" / f"{name}.csv").open() as file:
            assert list(csv.DictReader(file))
    assert "Is a diagonal strategy the best?" in page
