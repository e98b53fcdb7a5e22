"""Public parameters from elsewhere, and holdout groups: what a fit reads besides events."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc import Campaign
from adsbpc.campaign import check_targets
from adsbpc.campaign.fits import make_fit
from adsbpc.engines import open_engine
from adsbpc.errors import LedgerError, SourceError, SpecError
from adsbpc.model import load_spec
from adsbpc.privacy import COUNT_UNITS
from tests.campaign.files import edit, published
from tests.campaign.test_fits import OWN, fit_in, with_fit
from tests.mechanisms.recording import RecordingRandomness


@pytest.fixture
def winter(tmp_path: Path) -> Path:
    """An earlier campaign of another folder that made a fit."""
    file = with_fit(tmp_path / "winter")
    Campaign.load(file).release()
    return file


@pytest.mark.parametrize("origin", ["previous", "parameters"])
def test_public_parameters_serve_from_the_first_slot_and_cost_nothing(
    origin: str, winter: Path, tmp_path: Path
) -> None:
    (tmp_path / "spring").mkdir()
    (tmp_path / "spring" / "fit.json").write_text(fit_in(winter).to_text())
    name = "../winter/adsbpc-releases/acme/spring" if origin == "previous" else "fit.json"
    file = with_fit(tmp_path / "spring", fit=f'{origin} = "{name}"')
    Campaign.load(file).release()
    releases = [json.loads(text) for text in published(file.parent).values()]
    assert {release["attribution"] for release in releases} == {"shapley"}
    assert all(release["fit"] is None for release in releases)
    assert all(release["fit_charge"] is None for release in releases)
    assert Campaign.load(file).fit() == fit_in(winter).essentials()


@pytest.fixture
def spring(winter: Path, tmp_path: Path) -> Path:
    """A campaign with the parameters of winter in a file, whose first slot is released."""
    (tmp_path / "spring").mkdir()
    (tmp_path / "spring" / "fit.json").write_text(fit_in(winter).to_text())
    file = with_fit(tmp_path / "spring", fit='parameters = "fit.json"')
    Campaign.load(file).release(1)
    return file


def test_public_parameters_may_not_change_on_the_way(spring: Path) -> None:
    parameters = spring.parent / "fit.json"
    content = json.loads(parameters.read_text())
    # Only what makes credits counts: the counts that they came from may be left out.
    short = {key: content[key] for key in ("model", "order", "publishers", "parameters")}
    parameters.write_text(json.dumps(short))
    Campaign.load(spring).release(2)
    units = short["parameters"]["units"]
    units[0] -= 1
    parameters.write_text(json.dumps(short))
    with pytest.raises(LedgerError, match="has other parameters now"):
        Campaign.load(spring).release(3)
    parameters.write_text("broken")
    with pytest.raises(SpecError, match="cannot be read as parameters"):
        Campaign.load(spring).release(3)
    assert len(published(spring.parent)) == 2


def test_a_change_between_two_slots_of_one_run_changes_nothing(spring: Path) -> None:
    """The parameters in use are the ledger's."""
    parameters = spring.parent / "fit.json"
    started = Campaign.load(spring).fit()
    for released in Campaign.load(spring).releasing():
        if released.release.slot == 2:
            parameters.write_text(parameters.read_text().replace("720720", "720719"))
            assert Campaign.load(spring).fit() == started
    assert len(published(spring.parent)) == 5


def test_parameters_may_be_moved_or_gone_once_the_campaign_has_started(spring: Path) -> None:
    (spring.parent / "fit.json").rename(spring.parent / "moved.json")
    Campaign.load(spring).release(2)
    edit(spring, "fit.json", "moved.json")
    Campaign.load(spring).release(3)
    (spring.parent / "moved.json").unlink()
    assert len(Campaign.load(spring).release()) == 5
    assert Campaign.load(spring).report().releases[-1].attribution == "shapley"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda fit: "no JSON", "cannot be read as parameters"),
        (lambda fit: "{}", "cannot be read as parameters"),
        (lambda fit: json.dumps({**fit, "model": "sharpley"}), "cannot be read as parameters"),
        (lambda fit: json.dumps({**fit, "publishers": ["P-2", "P-1", "other"]}), "List the same"),
        (lambda fit: json.dumps({**fit, "model": "logistic"}), "is a fit of logistic"),
        (lambda fit: json.dumps({**fit, "parameters": {"units": [1]}}), "units has 1 numbers"),
        (lambda fit: json.dumps({**fit, "parameters": {}}), "units has 0 numbers"),
        (lambda fit: json.dumps({**fit, "full_weight": 0}), "full_weight: expected 1 or more"),
        (lambda fit: json.dumps({**fit, "values": [2**70]}), "values.0: expected less than"),
        (lambda fit: json.dumps({**fit, "comparison": fit["comparison"][1:]}), "every publisher"),
    ],
)
def test_bad_parameter_files(change: object, message: str, winter: Path, tmp_path: Path) -> None:
    (tmp_path / "spring").mkdir()
    content = json.loads(fit_in(winter).to_text())
    text = change(content)  # type: ignore[operator]
    (tmp_path / "spring" / "fit.json").write_text(text)
    file = with_fit(tmp_path / "spring", fit='parameters = "fit.json"')
    for refused in (Campaign.load(file).plan, Campaign.load(file).release):
        with pytest.raises(SpecError, match=message):
            refused()
    assert not (file.parent / "ledger.sqlite").exists()


@pytest.mark.parametrize("name", ["nowhere", ".", "../winter"])
def test_a_folder_without_a_fit(name: str, winter: Path, tmp_path: Path) -> None:
    file = with_fit(tmp_path / "spring", fit=f'previous = "{name}"')
    with pytest.raises(SpecError, match="holds no release with a fit"):
        Campaign.load(file).release(1)
    assert winter.exists()


# ---- a holdout group ---------------------------------------------------------------------------


def holdout(directory: Path, users: pa.Array, column: str = "user_id") -> None:
    directory.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({column: users}), directory / "holdout.parquet")


def test_a_holdout_group_is_counted_apart(tmp_path: Path) -> None:
    """Of five people in it one converts; the same id twice, or none, counts once, or not."""
    holdout(tmp_path, pa.array(["u1", "n1", "n2", "n3", "n4", "n4", None, ""]))
    file = with_fit(tmp_path, fit=f'{OWN}\nholdout = "holdout.parquet"')
    engine = open_engine("duckdb", {})
    try:
        fit, _ = make_fit(load_spec(file), engine, RecordingRandomness())
    finally:
        engine.close()
    assert fit.values[-2:] == (4 * COUNT_UNITS, COUNT_UNITS)
    assert sum(fit.values[:-2]) == 11 * COUNT_UNITS
    assert len(Campaign.load(file).release()) == 5


@pytest.mark.parametrize(
    ("users", "column", "message"),
    [
        (pa.array(["u1"]), "person", "user_id"),
        (pa.array([1.5]), "user_id", "user_id"),
    ],
)
def test_a_bad_list_of_the_holdout(
    users: pa.Array, column: str, message: str, tmp_path: Path
) -> None:
    holdout(tmp_path, users, column)
    file = with_fit(tmp_path, fit=f'{OWN}\nholdout = "holdout.parquet"')
    with pytest.raises(SourceError, match=message):
        Campaign.load(file).release(1)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_no_list_of_the_holdout(tmp_path: Path) -> None:
    file = with_fit(tmp_path, fit=f'{OWN}\nholdout = "none.parquet"')
    for refused in (Campaign.load(file).plan, Campaign.load(file).release):
        with pytest.raises(SourceError, match=r"\[attribution.fit\] holdout"):
            refused()
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize("name", ["people.main.holdout_users", "holdout_users", "publishers"])
def test_a_table_of_the_engine(name: str, tmp_path: Path) -> None:
    """Whatever its name is: rows of our own have names that nobody else gives."""
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        table = name.rpartition(".")[2]
        connection.execute(f"CREATE TABLE {table} AS SELECT 'u1' AS user_id")
    file = with_fit(
        tmp_path, fit=f'{OWN}\nholdout = "{name}"', options='database = "people.duckdb"'
    )
    assert len(Campaign.load(file).release()) == 5


@pytest.mark.parametrize("name", ["fit.json", "holdout.parquet"])
def test_nothing_is_written_over_what_a_fit_needs(name: str, winter: Path, tmp_path: Path) -> None:
    directory = tmp_path / "spring"
    holdout(directory, pa.array(["u1"]))
    (directory / "fit.json").write_text(fit_in(winter).to_text())
    other = 'parameters = "fit.json"' if name == "fit.json" else f'{OWN}\nholdout = "{name}"'
    file = with_fit(directory, fit=other)
    with pytest.raises(SpecError, match="Give another name"):
        check_targets([directory / name], load_spec(file), file)
