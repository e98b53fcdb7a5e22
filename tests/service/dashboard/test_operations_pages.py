"""What operators see: arrivals, the scheduler, the ledger, keys. Nobody else does."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.model.durations import MICROSECONDS_PER_HOUR
from adsbpc.service.dashboard.operations import HOURS, arrivals_of
from adsbpc.service.ingest.batches import HourlyCount
from tests.report.outline import Outline
from tests.service.dashboard.stage import Stage, Visitor

NOW_US = 1_000_000 * MICROSECONDS_PER_HOUR + 12_345


@pytest.mark.parametrize("path", ["/operations", "/operations/keys"])
@pytest.mark.parametrize("role", ["advertiser", "publisher", "reader"])
def test_only_operators_operate(stage: Stage, role: str, path: str) -> None:
    visitor = stage.visitor(role, "Ad-1")
    assert visitor.get(path).status_code == 403
    for form in ("/operations/keys", "/operations/verification"):
        assert visitor.send(form, {"role": "operator", "label": "mine"}).status_code == 403
    words = visitor.look("/docs").words
    assert "Operations" not in words.partition("Sign out")[0]


def test_the_operators_page(operator: Visitor) -> None:
    words = operator.look("/operations").words
    # Of two days: 300 conversions each, and one that could not be read.
    assert re.search(r"advertiser:Ad-1 conversions [^|]*? UTC 2 600 0 2 0", words)
    assert re.search(r"timestamp[^|]*? advertiser:Ad-1 conversions 2", words)
    assert "spring 2 of 5 2 2 no nobody" in words
    assert "operate" in words
    assert "scheduler" in words
    assert "grace 1m" in words


def test_the_ledger_is_verified(operator: Visitor) -> None:
    answer = operator.send("/operations/verification", {})
    words = Outline(answer.text).words
    assert re.search(r"spring , scope acme: \d+ entries, as they were written", words)


def test_a_key_is_shown_once_and_stops_at_once(stage: Stage) -> None:
    operator, path = stage.visitor("operator"), "/operations/keys"
    sent = {"role": "advertiser", "subject": "Ad-9", "label": "<b>Nine</b>", "days": "30"}
    before = len(stage.server.backend.keys.list())
    answer = operator.send(path, sent)
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    answer = operator.get(path)
    made = [attrs["value"] for _, attrs in Outline(answer.text).tags if attrs.get("id") == "made"]
    key = str(made[0])
    assert stage.server.backend.keys.authenticate(key) is not None
    later = operator.get(path).text
    assert key not in later
    # Loading the page again made no other.
    assert len(stage.server.backend.keys.list()) == before + 1
    assert "<b>Nine</b>" in Outline(later).words
    holder = stage.visitor()
    assert holder.sign_in(key).status_code == 303
    key_id = key.split("_")[1]
    answer = operator.send(f"{path}/{key_id}/revocation", {})
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert stage.server.backend.keys.authenticate(key) is None
    assert holder.get("/campaigns").status_code == 303
    assert operator.send(f"{path}/{key_id}/revocation", {}).status_code == 404
    lines = stage.server.backend.audit.newest(100)
    assert {"key made", "key revoked"} <= {line["action"] for line in lines}
    assert not any(key.split("_", 2)[2] in str(line) for line in lines)


@pytest.mark.parametrize("text", ["nonsense", f"adsbpc_{'0' * 16}_{'x' * 43}"])
def test_a_cookie_that_holds_no_key_shows_nothing(stage: Stage, text: str) -> None:
    operator = stage.visitor("operator")
    operator.http.cookies.set("adsbpc-made", text, path="/operations/keys")
    assert text not in operator.get("/operations/keys").text


@pytest.mark.parametrize(
    ("path", "told"),
    [("/operations", "Counts on this page have no noise"), ("/campaigns", "released numbers only")],
)
def test_the_footer_says_what_a_page_is_made_from(operator: Visitor, path: str, told: str) -> None:
    footers = ("Counts on this page have no noise", "released numbers only")
    words = operator.look(path).words
    assert [each for each in footers if each in words] == [told]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"subject": ""}, "a key of a publisher speaks for one publisher"),
        ({"label": ""}, "label = ''"),
        ({"role": "operator"}, "an operator speaks for nobody"),
        ({"role": "king"}, "a role or lifetime that does not exist"),
        ({"days": "-1"}, "a role or lifetime that does not exist"),
    ],
)
def test_a_key_that_cannot_be_made(operator: Visitor, changes: dict[str, str], told: str) -> None:
    sent = {"role": "publisher", "subject": "search", "label": "search", "days": "30", **changes}
    answer = operator.send("/operations/keys", sent)
    assert answer.status_code == 422
    assert told in Outline(answer.text).words


COUNTED = st.builds(
    HourlyCount,
    hour_us=st.integers(0, HOURS - 1).map(
        lambda ago: (NOW_US // MICROSECONDS_PER_HOUR - ago) * MICROSECONDS_PER_HOUR
    ),
    source=st.sampled_from(["impressions", "conversions"]),
    owner=st.sampled_from(["publisher:a", "publisher:b", "advertiser:c"]),
    verdict=st.sampled_from(["", "accepted", "duplicate", "bad timestamp", "unknown field: x"]),
    number=st.integers(1, 10_000),
)


@given(st.lists(COUNTED, max_size=40))
def test_no_row_is_lost_or_counted_twice(counted: list[HourlyCount]) -> None:
    arrivals = arrivals_of(counted, NOW_US, {})
    rows = sum(each.number for each in counted if each.verdict)
    assert arrivals.accepted + arrivals.duplicate + arrivals.quarantined == rows
    by_sender = [each.accepted + each.duplicate + each.quarantined for each in arrivals.senders]
    assert sum(by_sender) == rows
    assert sum(each.rows for each in arrivals.reasons) == arrivals.quarantined
    assert sum(each.batches for each in arrivals.senders) == sum(
        each.number for each in counted if not each.verdict
    )
    drawn = arrivals.chart["spec"]["data"]["values"]
    assert sum(row["top"] - row["bottom"] for row in drawn) == rows
    assert len(drawn) == 3 * HOURS
