"""`adsbpc fit`, and what plan and demo say of fitted models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adsbpc import Campaign
from adsbpc.model import Fit
from tests.campaign.files import write_campaign
from tests.campaign.test_fits import fit_in, with_fit
from tests.cli.program import adsbpc
from tests.cli.test_campaign_commands import refused, run


def test_before_the_fit_is_made(tmp_path: Path) -> None:
    file = with_fit(tmp_path)
    refused(
        adsbpc("fit", file, cwd=tmp_path),
        1,
        "the fit is made when slot 2 is released, and 0 of 5 are. Release it first",
    )


def test_a_model_without_parameters(tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    refused(adsbpc("fit", file, cwd=tmp_path), 2, "has no parameters", "markov")


def test_parameters_go_to_another_campaign(tmp_path: Path) -> None:
    winter = with_fit(tmp_path / "winter")
    Campaign.load(winter).release()
    told = run("fit", winter, "--out", tmp_path / "fit.json", cwd=tmp_path)
    # Orders are told of models that have several.
    assert "Model 'shapley', released with slot 2." in told
    assert "14 counts of coalitions, noise of 3.2 users each." in told
    assert "incremental" in told
    assert Fit.from_text((tmp_path / "fit.json").read_text()) == fit_in(winter)
    spring = with_fit(tmp_path / "spring", fit='parameters = "../fit.json"')
    assert len(Campaign.load(spring).release()) == 5
    assert "which the campaign file declares public" in run("fit", spring, cwd=tmp_path)


@pytest.mark.parametrize("model", ["logistic", "shapley_ordered"])
def test_another_model_from_the_same_counts(model: str, tmp_path: Path) -> None:
    file = with_fit(tmp_path)
    Campaign.load(file).release()
    told = run("fit", file, "--model", model, "--out", "other.json", "--json", cwd=tmp_path)
    made = Fit.from_text((tmp_path / "other.json").read_text())
    assert json.loads(told) == json.loads(made.to_text())
    assert made.model == model
    assert made.values == fit_in(file).values
    other = with_fit(tmp_path / "other", model, 'parameters = "../other.json"')
    assert len(Campaign.load(other).release()) == 5


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--model", "markov"), 2, "needs counts of transitions"),
        (("--model", "sharpley"), 2, 'Did you mean "shapley"'),
        (("--out", "spring.toml"), 2, "Give another name"),
        (("--out", "no/where.json"), 2, "does not exist"),
    ],
)
def test_what_cannot_be_had(
    arguments: tuple[str, ...], code: int, message: str, tmp_path: Path
) -> None:
    file = with_fit(tmp_path)
    Campaign.load(file).release(1)
    Campaign.load(file).release(2)
    refused(adsbpc("fit", file, *arguments, cwd=tmp_path), code, message)


def test_the_plan_says_what_each_model_costs(tmp_path: Path) -> None:
    file = with_fit(tmp_path)
    told = " ".join(run("plan", file, cwd=tmp_path).split())
    assert "fitted once, when slot 2 is released, from 14 counts of coalitions" in told
    assert "Shares that follow from the counts of the fit cost nothing more." in told
    planned = json.loads(run("plan", file, "--json", cwd=tmp_path))
    assert planned["fit"]["rho"] == 0.05
    assert planned["split"]["attribution fit"] == 0.05
    further = {each["model"]: each for each in planned["further_models"]}
    assert further["logistic"] == {"model": "logistic", "rho": 0.95, "shares": True}
    assert further["markov"] == {"model": "markov", "rho": 1.0, "shares": False}
    assert further["last_touch"] == {"model": "last_touch", "rho": 0.95, "shares": False}
    assert "shapley" not in further


def test_a_plan_without_a_fit(tmp_path: Path) -> None:
    planned = json.loads(run("plan", write_campaign(tmp_path), "--json", cwd=tmp_path))
    assert planned["fit"] is None
    assert {each["rho"] for each in planned["further_models"]} == {1.0, 1.05}


def test_a_demo_of_a_fitted_model(tmp_path: Path) -> None:
    told = run("demo", "--users", 2000, "--slots", 4, "--model", "markov", "--json", cwd=tmp_path)
    made = json.loads(told)
    assert [release["attribution"] for release in made["releases"]] == [
        "shapley_path", "shapley_path", "markov", "markov",
    ]  # fmt: skip
    assert sum(made["truth"].values()) > 0
    refused(
        adsbpc("demo", "--slots", 1, "--model", "markov", cwd=tmp_path),
        2,
        "needs a campaign of 2 slots or more",
    )
