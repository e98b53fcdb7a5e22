"""Which column holds which field, by its name and by what stands in it.

Proposals for whoever writes a campaign file: what they confirm is declared there, and nothing is
guessed when a slot is released.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from adsbpc.engines import ColumnKind
from adsbpc.events.samples import Sample
from adsbpc.events.schema import CONVERSION_FIELDS, IMPRESSION_FIELDS, IMPRESSION_KINDS

IMPRESSIONS, CONVERSIONS = "impressions", "conversions"
REQUIRED = {
    IMPRESSIONS: tuple(each.name for each in IMPRESSION_FIELDS if each.required),
    CONVERSIONS: tuple(each.name for each in CONVERSION_FIELDS if each.required),
}
# What is looked for besides: ids against repeats, amounts for revenue. When something arrived is
# left to people, because it moves events between slots.
_OPTIONAL = {IMPRESSIONS: ("event_id",), CONVERSIONS: ("value", "event_id")}

# Words that columns are named with, in the languages that were asked for so far.
_WORDS = {
    "user_id": (
        "user uid customer cookie device visitor member person people profile subscriber buyer "
        "shopper reader household kunde kunden nutzer besucher utilisateur client usuario cliente "
        "gaid idfa who anonymous email"
    ),
    "publisher_id": (
        "publisher site source channel network placement partner platform medium media inventory "
        "domain supplier app kanal seite quelle werbetraeger canal editeur soporte"
    ),
    "advertiser_id": (
        "advertiser brand account merchant shop store company marke werbetreibender haendler "
        "annonceur anunciante campaign mandant"
    ),
    "timestamp": (
        "timestamp time date datetime ts when at occurred happened served seen clicked purchased "
        "bought ordered created day moment zeit zeitpunkt datum uhrzeit heure fecha hora"
    ),
    "kind": "kind type event action interaction art typ",
    "value": (
        "value amount revenue price total basket turnover sales spend gross net sum betrag umsatz "
        "preis wert montant importe eur usd gbp"
    ),
    "event_id": "eventid impressionid clickid conversionid orderid transactionid uuid guid beleg",
}
_NAMED, _EXACT, _CERTAIN, _NEVER = 6, 10, 8, -100
_ENOUGH, _ENOUGH_OF_THE_REST = 5, 2
# More of them are people, or events, rather than advertisers.
_FEW = 20
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?")


def columns_of(
    source: str, sample: Sample, other: Sample, given: Mapping[str, str]
) -> dict[str, str]:
    """The column of each field, as far as one is likely; those that are `given` are as they are."""
    fields = (*REQUIRED[source], *_OPTIONAL[source])
    scores = {
        (field, column): _score(field, column, sample, other)
        for field in fields
        if field not in given
        for column in sample.kinds
        if column not in given.values()
    }
    found = dict(given)
    for field, column in _chosen(scores, _ENOUGH):
        found[field] = column
    # What is left may be named by anything: one column that tells few things apart.
    left = {
        pair: score
        for pair, score in scores.items()
        if pair[0] in ("publisher_id", "advertiser_id")
        and pair[0] not in found
        and pair[1] not in found.values()
    }
    for field, column in _chosen(left, _ENOUGH_OF_THE_REST):
        found[field] = column
    return {field: found[field] for field in fields if field in found}


def _chosen(scores: Mapping[tuple[str, str], float], least: int) -> Iterator[tuple[str, str]]:
    """The best pairs first, each field and each column once."""
    taken: set[str] = set()
    for (field, column), score in sorted(scores.items(), key=lambda pair: -pair[1]):
        marks = {f"field {field}", f"column {column}"}
        if score >= least and not marks & taken:
            taken |= marks
            yield field, column


def _score(field: str, column: str, sample: Sample, other: Sample) -> float:
    named, texts = _named(field, column), sample.texts[column]
    if not texts:
        return _NEVER
    distinct, is_moment = sample.distinct(column), sample.clock(column) is not None
    few = len(distinct) <= max(1, len(texts) // 5) and len(distinct) <= 2_000
    is_kind = {each.lower() for each in distinct} <= set(IMPRESSION_KINDS)
    match field:
        case "timestamp":
            return named + _CERTAIN if is_moment else _NEVER
        case "kind":
            return named + _CERTAIN if distinct <= set(IMPRESSION_KINDS) else _NEVER
        case "value":
            return named if _is_amount(sample.kinds[column], texts) and not is_moment else _NEVER
        case "event_id":
            return named if len(distinct) == len(texts) else _NEVER
    if is_kind or (is_moment and not named) or sample.kinds[column] is ColumnKind.NUMBER:
        return _NEVER
    shared = _shared(distinct, other)
    # Many that both sources have are people; of two such columns the finer one is.
    people = shared and len(distinct) > _FEW
    if field == "user_id":
        return named + (7 + len(distinct) / 1e9 if people else -3 * (len(distinct) <= _FEW))
    own = 3 if shared and not people and field == "advertiser_id" else -4 * people
    return named + own + (3 if few else -6)


def _named(field: str, column: str) -> int:
    """How much a column's name speaks for a field."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).lower())
    if "".join(words) == field.replace("_", ""):
        return _EXACT
    known = _WORDS[field].split()
    return _NAMED if "".join(words) in known or any(word in known for word in words) else 0


def _is_amount(kind: ColumnKind, texts: Sequence[str]) -> bool:
    if kind in (ColumnKind.NUMBER, ColumnKind.INTEGER):
        return True
    return kind is ColumnKind.TEXT and all(_NUMBER.fullmatch(each) for each in texts)


def _shared(values: frozenset[str], other: Sample) -> bool:
    """Whether some column of the other source has many of the same values."""
    return any(
        20 * len(values & theirs) >= min(len(values), len(theirs)) > 0
        for theirs in map(other.distinct, other.kinds)
    )
