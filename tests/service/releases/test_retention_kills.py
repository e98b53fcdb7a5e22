"""Kill -9 while campaigns are released and closed, people forgotten, events and books deleted."""

from __future__ import annotations

from pathlib import Path

from adsbpc.campaign.erasure import is_named, is_over
from adsbpc.model import PICO_RHO
from tests.effort import examples
from tests.service.keeping import DAY, START, Service, live_for_ever
from tests.service.killed import killed

KILLS = examples(2, 100)
KEEP = "40d"
OPEN, CLOSED = ("open-1", "open-2"), ("closed-1", "closed-2", "closed-3")


def spent(service: Service) -> dict[str, int]:
    return {name: service.backend.campaigns.ledger.spent(name) for name in (*OPEN, *CLOSED)}


def test_nothing_is_lost_kept_or_refunded_wrongly(tmp_path: Path) -> None:
    service = Service(tmp_path, KEEP)
    campaigns = {name: service.create(name, days=60) for name in (*OPEN, *CLOSED)}
    ledger, stays = service.backend.campaigns.ledger, [f"stays-{k}" for k in range(20)]
    service.put(*stays, *(f"gone-{k}" for k in range(20)), day=0)
    # Nobody measures these any more, and they are old by then.
    service.put("old", day=0, advertiser="Ad-2")
    for registered in campaigns.values():
        service.release(registered, 1)
    before, day = spent(service), 1
    for life in range(KILLS):
        if life % 5 == 0:
            day += 1
            service.put(*stays, day=day)
        now = START + (day + 1) * DAY
        with killed(live_for_ever, tmp_path, KEEP, now, life, after=(0.05, 1.0)):
            pass
        after = spent(service)
        for name, amount in after.items():
            # What was drawn stays charged, and reserved.
            assert before[name] <= amount <= ledger.reserved(name) <= PICO_RHO
            assert ledger.verify(name).problem is None
        before = after
        present = service.users()
        pushes = 1 + (day - 1)
        assert {user: present[user] for user in stays} == dict.fromkeys(stays, pushes)
    asked = set((tmp_path / "asked").read_text().split())
    assert asked, "nobody was to be forgotten: this tests nothing"
    service.clock.moment = START + 50 * DAY
    for user in asked:
        service.backend.retention.forget(user)
    service.backend.retention.apply()
    present = service.users()
    assert not asked & set(present)
    assert present["old"] == 0
    assert {user: present[user] for user in stays} == dict.fromkeys(stays, 1 + (day - 1))
    service.backend.files.delete_retired()
    for file in service.anywhere("gone-"):
        assert "adsbpc-books" in str(file) or "gone-" in str(set(present) - asked)
    for name, registered in campaigns.items():
        assert name in CLOSED or not is_over(registered.spec)
        if is_over(registered.spec):
            assert not any(is_named(registered.spec, user) for user in asked)
            assert ledger.reserved(name) == ledger.spent(name)
        else:
            assert ledger.reserved(name) == PICO_RHO
            assert is_named(registered.spec, "gone-0"), "an account is gone"
        assert registered.campaign.verify().problem is None
        assert registered.campaign.audit().held
    service.close()
