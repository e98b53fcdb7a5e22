"""The table of who may do what, written down a second time and compared cell by cell."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.service.auth.permissions import ALLOWED, Action, Principal, Role, allows

# Columns: operator, publisher, advertiser, reader of one advertiser, reader of all.
# y: yes; o: its own advertiser's only; .: no.
TABLE = """
    push impressions          .  y  .  .  .
    push conversions          .  .  y  .  .
    push spend                y  .  o  .  .
    assign arms               y  .  o  .  .
    read own deliveries       .  y  y  .  .
    list campaigns            y  .  y  y  y
    create campaign           y  .  .  .  .
    plan                      y  .  .  .  .
    read campaign             y  .  o  o  y
    read releases             y  .  o  o  y
    release                   y  .  .  .  .
    withdraw campaign         y  .  .  .  .
    pause or resume campaign  y  .  .  .  .
    close campaign            y  .  .  .  .
    verify                    y  .  .  .  .
    manage keys               y  .  .  .  .
    operate                   y  .  .  .  .
    who am I                  y  y  y  y  y
"""
WHO = (
    Principal("1", Role.OPERATOR, ""),
    Principal("2", Role.PUBLISHER, "shoes"),
    Principal("3", Role.ADVERTISER, "shoes"),
    Principal("4", Role.READER, "shoes"),
    Principal("5", Role.READER, ""),
)
CELLS = {
    (Action(line[:26].strip()), principal): cell
    for line in (line.strip() for line in TABLE.strip().splitlines())
    for principal, cell in zip(WHO, line[26:].split(), strict=True)
}


def test_the_table_has_every_action_and_role() -> None:
    assert set(CELLS) == set(product(Action, WHO))
    assert {principal.role for principal in WHO} == set(Role) == set(ALLOWED)


@pytest.mark.parametrize(("action", "principal"), CELLS)
def test_each_cell(action: Action, principal: Principal) -> None:
    cell = CELLS[action, principal]
    assert allows(principal, action) == (cell == "y")
    assert allows(principal, action, "shoes") == (cell in "yo")


@given(st.sampled_from(list(CELLS)), st.text())
def test_nobody_reaches_what_is_of_another_advertiser(
    cell: tuple[Action, Principal], other: str
) -> None:
    action, principal = cell
    if allows(principal, action, other):
        assert other == "shoes" or principal.role in (Role.OPERATOR, Role.PUBLISHER) or (
            principal.role is Role.READER and principal.subject == ""
        )  # fmt: skip


@given(st.sampled_from(Action), st.text(), st.text() | st.none())
def test_a_publisher_never_reads(action: Action, subject: str, advertiser: str | None) -> None:
    """But what it sent itself: not even a campaign of an advertiser that has the same id."""
    publisher = Principal("1", Role.PUBLISHER, subject)
    may = allows(publisher, action, advertiser)
    own = (Action.PUSH_IMPRESSIONS, Action.READ_DELIVERIES, Action.WHO_AM_I)
    assert may == (action in own)


def test_a_name_that_looks_alike_is_another() -> None:
    for other in ("Shoes", "shoes ", "sho\u0435s", "", "shoes\x00", "shoe"):
        assert not allows(WHO[2], Action.READ_RELEASES, other)
        assert not allows(WHO[3], Action.READ_CAMPAIGN, other)


def test_an_advertiser_without_a_name_reads_nothing() -> None:
    nobody = Principal("1", Role.ADVERTISER, "")
    assert not allows(nobody, Action.READ_CAMPAIGN)
    assert not allows(nobody, Action.READ_CAMPAIGN, "shoes")
