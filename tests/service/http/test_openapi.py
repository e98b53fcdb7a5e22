"""Schemathesis against the OpenAPI document of a real server: no 5xx, no answer outside of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsbpc import Client
from adsbpc.service.auth.permissions import Role
from adsbpc.service.backend import Backend, open_backend
from adsbpc.service.clock import SystemClock
from adsbpc.service.http.limits import Throttle
from adsbpc.service.server import serving
from tests.effort import examples
from tests.service.clocks import SetClock
from tests.service.raw import http
from tests.service.running import content, settings_in, trial, with_signing_key

SUBJECTS = {"operator": "", "publisher": "P-1", "advertiser": "Ad-1"}

# What is left out of all checks, and why:
# - positive_data_acceptance where a body is sent: what a campaign or key may be depends on more
#   than a schema can say (a day that is not over, keys that belong together, a name that is free).
# - negative_data_rejection of pushes: a bad row is answered with its verdict, the batch with 200.
# - the stream, which goes on for as long as its campaign: tests of the API listen to it.
# Nothing is said here about how long an answer takes.
CONFIG = """
request-timeout = 120

[generation]
deterministic = true
max-examples = 8
database = "none"

[parameters]
{parameters}

[[operations]]
include-method = "POST"
checks.positive_data_acceptance.enabled = false

[[operations]]
include-method = "PUT"
checks.positive_data_acceptance.enabled = false

[[operations]]
include-tag = "events"
checks.negative_data_rejection.enabled = false

[[operations]]
include-path = "/v1/campaigns/{{campaign}}/stream"
enabled = false
"""


@dataclass(frozen=True)
class Target:
    """A server that signs, with a trial that is released to its end."""

    backend: Backend
    url: str
    operator: str
    campaign: str

    def key(self, role: str) -> str:
        return self.backend.keys.create(Role(role), SUBJECTS[role], role, None)[1]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    clock = SetClock()
    directory = tmp_path_factory.mktemp("openapi")
    sections: dict[str, dict[str, Any]] = {
        "scheduler": {"enabled": False},
        "statements": with_signing_key(directory),
    }
    opened = open_backend(settings_in(directory, **sections), clock)
    # One of the checks is to send wrong keys, more of them than any address may.
    backend = replace(opened, throttle=Throttle(SystemClock(), failures=1_000_000))
    with serving(backend) as url:
        key = backend.keys.create(Role.OPERATOR, "", "operator", None)[1]
        with Client(url, key) as client:
            campaign = client.create_campaign(trial(slots=1))["id"]
            clock.moment += timedelta(days=1)
            assert client.release(campaign)
            clock.moment += timedelta(hours=1)
        yield Target(backend, url, key, campaign)


def check(target: Target, role: str, directory: Path, parameters: str, *options: str) -> None:
    config = directory / "schemathesis.toml"
    config.write_text(CONFIG.format(parameters=parameters))
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")),
            "--config-file",
            str(config),
            "run",
            f"{target.url}/openapi.json",
            "--header",
            f"Authorization: Bearer {target.key(role)}",
            *options,
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert "Tested: 28" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("role", ["operator", "publisher", "advertiser"])
def test_the_document_is_true(target: Target, role: str, tmp_path: Path) -> None:
    check(target, role, tmp_path, "")


@pytest.mark.slow
@pytest.mark.parametrize("role", ["operator", "advertiser"])
def test_the_document_is_true_of_a_campaign(target: Target, role: str, tmp_path: Path) -> None:
    """Whatever else is asked, it is about one that there is."""
    parameters = f'"path.campaign" = "{target.campaign}"'
    check(target, role, tmp_path, parameters, "--mode", "positive", "--phases", "coverage,fuzzing")


def test_the_document_says_how_things_are_sent(target: Target) -> None:
    document = http().get(f"{target.url}/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert schemas["AttributionSection"]["properties"]["click_lookback"]["default"] == "30d"
    assert "end" in schemas["CampaignSection"]["properties"]
    assert set(schemas["FitSection"]["properties"]) == {"rho", "slots", "fallback", "full_journey"}
    for path, methods in document["paths"].items():
        for method, said in methods.items():
            told = f"{method} {path}"
            assert said["summary"], told
            if path.startswith("/v1"):
                assert said["security"] == [{"key": []}], told
                assert {"400", "401", "403", "429", "500", "503"} <= set(said["responses"]), told
            for status, answer in said["responses"].items():
                if int(status) >= 400:
                    assert list(answer["content"]) == ["application/problem+json"], told


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """Campaigns that make sense, most of them, with numbers at the ends of what is allowed."""
    slots = draw(st.integers(1, 12))
    slot = st.integers(1, slots)
    workload: dict[str, Any] = {"queries": draw(st.sampled_from(["prefix", "slot", "sliding"]))}
    if workload["queries"] == "sliding":
        workload["window"] = draw(slot)
    if draw(st.booleans()):
        several = st.lists(st.tuples(slot, slot).map(sorted), min_size=1, max_size=3)
        workload = {"queries": "ranges", "ranges": draw(several)}
    objective = draw(st.sampled_from(["weights", "max-variance", "variance-targets"]))
    if objective == "weights":
        weight = st.sampled_from([1e-6, 1.0, 1e6])
        workload["weights"] = draw(st.lists(weight, min_size=slots, max_size=slots))
    else:
        workload["objective"] = objective
    if objective == "variance-targets":
        goal = st.sampled_from([1e-9, 1.0, 1e18])
        workload["targets"] = draw(st.lists(goal, min_size=slots, max_size=slots))
    adsbpc = st.fixed_dictionaries(
        {"bounds": st.sampled_from(["histogram", "svt"])},
        optional={
            "quantile": st.sampled_from([0.000001, 0.5, 0.999999]),
            "quantile_slots": st.integers(1, 10**9),
            "quantile_limit": st.sampled_from([1, 100_000, "none"]),
            "scale_up": st.sampled_from([1.0000001, 100.0]),
            "max_reports": st.integers(1, 10**9),
            "threshold": st.integers(0, 10**9),
        },
    )
    personal = st.fixed_dictionaries(
        {"strategy": st.sampled_from(["optimised", "toeplitz", "square-root", "identity"])},
        optional={"heavy_user": st.integers(1, 100_000), "allowance": st.sampled_from([0.5, 1e4])},
    )
    privacy = {
        "rho": draw(st.sampled_from([1e-6, 0.001, 0.5, 1.0, 1e6])),
        "mechanism": draw(st.sampled_from(["adsbpc", "personal-budget"])),
        "adsbpc": draw(adsbpc),
        "personal_budget": draw(personal),
    }
    campaign = {**content()["campaign"], "slots": slots}
    return {"campaign": campaign, "privacy": privacy, "workload": [workload]}


@settings(max_examples=examples(10, 80))
@given(plans())
def test_any_plan_is_answered(target: Target, plan: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {target.operator}"}
    answer = http().post(f"{target.url}/v1/plan", json=plan, headers=headers)
    assert answer.status_code in (200, 409, 422), f"{answer.text} {plan}"
