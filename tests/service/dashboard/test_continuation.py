"""A campaign that is over goes on as a new one, from the page."""

from __future__ import annotations

from tests.report.outline import Outline
from tests.service.dashboard.stage import Stage
from tests.service.dashboard.test_new_campaign import WANTED, values_in


def test_a_campaign_that_is_over_is_continued(steered: Stage) -> None:
    """Closed after the first of five days: the form has the rest, and can be sent as it is."""
    operator, book = steered.visitor("operator"), steered.server.backend.campaigns
    first = {
        **WANTED, "name": "term-1", "scope": "terms", "start": "2026-03-01", "slots": "5",
        "control_share": "0.1",
    }  # fmt: skip
    answer = operator.send("/campaigns/new", {**first, "action": "create"})
    path = answer.headers["location"]
    campaign = path.rpartition("/")[2]
    form = f"/campaigns/new?previous={campaign}"
    assert operator.get(form).status_code == 409
    assert "Continue" not in operator.look(path).words
    steered.release_day(1)
    assert operator.send(f"{path}/closing", {}).status_code == 303
    assert form in operator.get(path).text
    assert form not in steered.visitor("advertiser", "Ad-1").get(path).text
    page = operator.get(form)
    values = values_in(Outline(page.text))
    spent = float(book.ledger.spent("terms")) / 1e12
    assert 0 < spent < 1
    assert (values["name"], values["start"], values["slots"]) == ("term-2", "2026-03-02", "4")
    assert 0.999 * (1 - spent) <= float(str(values["rho"])) <= 1 - spent
    assert values["control_share"] == "0.1"
    assert f'<option value="{campaign}" selected>term-1 (Ad-1)</option>' in page.text
    sent = {
        **{name: value or "" for name, value in values.items()},
        "publishers": "search\nsocial", "slot": "1d", "week_starts": "monday",
        "model": "last_touch", "mechanism": "personal-budget", "metric_1": "conversions",
        "previous": campaign, "action": "create",
    }  # fmt: skip
    created = operator.send("/campaigns/new", sent)
    assert created.status_code == 303, Outline(created.text).words
    registered = book.get(created.headers["location"].rpartition("/")[2])
    assert registered is not None
    assert registered.spec.privacy is not None
    assert str(registered.spec.privacy.personal_budget.previous).endswith("term-1")
    assert operator.get("/campaigns/new?previous=nothing").status_code == 404
