"""What the report says in words: the summary, and the promise without formulas."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, NamedTuple

from adsbpc.model import OTHER_PUBLISHER, Adjacency, Measure, Promise
from adsbpc.model.measure_spec import COUNTED_ONCE, MetricName
from adsbpc.model.periods import Period, parts_of
from adsbpc.model.release_spec import MechanismName
from adsbpc.report.numbers import (
    about,
    amount,
    decimals_of,
    interval,
    one_in,
    percent,
    rounded_up,
    small,
)
from adsbpc.report.standings import clear_leader

if TYPE_CHECKING:
    from adsbpc.report.report import Report

# Up to here the odds at most double or so; from there on the worst case comes close to certainty.
_SMALL_EPSILON, _LARGE_EPSILON = 1.0, 3.0


class MechanismWords(NamedTuple):
    """What people call a mechanism, how it holds what one user moves, and what the errors that are
    expected of it rest on."""

    title: str
    sensitivity: str
    expected: str


MECHANISMS: dict[MechanismName, MechanismWords] = {
    "adsbpc": MechanismWords(
        "AdsBPC",
        "What one user adds to a slot is cut to a bound in whole units, and exactly that bound "
        "scales the noise.",
        "Bounds follow the data privately: a bound of r makes errors r times as large.",
    ),
    "personal-budget": MechanismWords(
        "personal budgets",
        "What one user adds is let in until that user's own budget is spent, computed in whole "
        "numbers over all slots, those to come included; the noise is scaled by that budget.",
        "The allowance, as many conversions with one publisher on one slot as a budget is large, "
        "follows the data privately, and errors grow in proportion to it. Until releases show "
        "more, it is what a person with [privacy.personal_budget] heavy_user conversions needs, 30 "
        "if that is left out; --bound assumes another, and --pilot finds a good guess.",
    ),
}

# What each part of a budget is spent on.
BUYS = {
    "measurement": "noise on the totals of every slot and publisher",
    "histogram": "noisy histograms of users by contribution, to choose what one user may add",
    "quantile": "private quantiles, the bounds of the first slots",
    "sparse vector": "watching whether bounds should change",
    "attribution fit": "noisy counts of journeys, from which the attribution model is fitted",
}

METRICS: dict[MetricName, str] = {
    "conversions": "attributed conversions",
    "value": "attributed value",
    "converters": "people with attributed conversions",
    "impressions": "impressions",
    "clicks": "clicks",
    "reach": "people reached",
    "squared_conversions": "squares of people's conversions",
    "squared_value": "squares of people's value",
}
# By arm all of them count, whether or not anybody saw an ad.
_OF_ARMS: dict[MetricName, str] = {
    **METRICS, "conversions": "conversions", "value": "value", "converters": "people who converted",
}  # fmt: skip


def counted_name(measure: Measure) -> str:
    return (_OF_ARMS if measure.by_arm else METRICS)[measure.metric]


def metric_name(report: Report) -> str:
    return counted_name(report.measure)


def decimals(report: Report) -> int:
    """Of totals so far; the same for all of them, so that columns line up."""
    sharpest = min(totals.standard_error for totals in report.measured[-1].running_totals)
    return decimals_of(report.measure.metric, sharpest)


def level_name(report: Report) -> str:
    return f"{100 * report.level:g}%"


# From these parts of the total on, what is or may be beyond budgets or bounds, or half an interval,
# is a warning. Of the first, some must have been counted, or it might be noise alone.
_MUCH_OF_FEW, _COUNTED, _MOSTLY_NOISE = 0.25, 0.03, 0.5


def summary(report: Report) -> str:
    """For example '9,412 ± 230 attributed conversions so far; search leads with 46%'."""
    total, shown = report.standings.everything, decimals(report)
    if report.adjusted or report.estimates_cut:
        # The estimate need not be in the middle of its interval.
        count = f"{amount(total.estimate, shown)} ({interval(total.low, total.high, shown)})"
    else:
        reach = report.lens.reach * total.standard_error
        count = f"{amount(total.estimate, shown)} ± {amount(reach, shown)}"
    sentence = f"{count} {metric_name(report)} so far"
    if total.noisy:
        return f"{sentence}, which cannot be told from zero yet."
    return " ".join(filter(None, (f"{sentence}{_leader(report)}.", warning(report))))


def warning(report: Report) -> str:
    """Where released figures show that estimates are poor; nothing where they are not."""
    total, everything = report.measured[-1].running_totals[0], report.standings.everything
    if everything.noisy:
        return ""
    counted, beyond = (
        each / everything.estimate for each in (total.added, total.added + total.cut)
    )
    if counted > _COUNTED and beyond > _MUCH_OF_FEW:
        limits = "their budgets" if report.measured[-1].bound is None else "bounds"
        return (
            f"Read with care: a few people do much of this. About {percent(counted)} of it goes "
            f"beyond {limits}, and up to {percent(beyond)} may; by publisher that is shared out by "
            "a guess."
        )
    wide = (everything.high - everything.low) / 2
    if wide > _MOSTLY_NOISE * everything.estimate:
        return (
            "Read with care: for so few people the noise is large beside what is counted. A longer "
            "period or a larger budget would tell more."
        )
    return ""


def _leader(report: Report) -> str:
    """What is counted as other is nobody's lead."""
    listed = tuple(s for s in report.standings.publishers if s.publisher != OTHER_PUBLISHER)
    first = listed[0]
    if first.total.noisy or first.share is None:
        return "; no publisher stands out of the noise"
    if clear_leader(listed, report.lens.reach):
        ahead = report.standings.publishers[0].publisher
        among = "" if ahead == first.publisher else " among the listed"
        return f"; {first.publisher} leads{among} with {percent(first.share.value)}"
    return f"; {first.publisher} and {listed[1].publisher} are too close to call"


def promise_in_words(promise: Promise) -> str:
    """In one or two sentences, with figures."""
    guarantee = promise.guarantee
    own = (
        f"rho = {rounded_up(guarantee.rho)} zCDP for one {guarantee.unit} ({guarantee.adjacency}), "
        f"over everything that the campaign releases: (epsilon = {rounded_up(promise.epsilon)}, "
        f"delta = {promise.delta:g})."
    )
    if promise.scope_rho != guarantee.rho:
        own += (
            f" All campaigns of scope {guarantee.scope!r} together: "
            f"rho = {rounded_up(promise.scope_rho)}, epsilon = {rounded_up(promise.scope_epsilon)}."
        )
    return f"{own} {renewed(promise)}".rstrip()


def renewed(promise: Promise) -> str:
    """What is promised over several periods, where budgets renew; nothing where they do not."""
    _, period = parts_of(promise.guarantee.scope)
    if period is None:
        return ""
    kind, rho = period.renewal, promise.scope_rho
    return (
        f"Budgets renew: this holds for what is released of one {kind}, here {period.label}, and "
        f"the next {kind} may cost everybody as much again. Over twelve of them together the "
        f"promise is rho = {rounded_up(12 * rho)}."
    )


def parameters(promise: Promise) -> dict[str, str]:
    """The promise in figures, each under its name."""
    guarantee = promise.guarantee
    return {
        "epsilon": rounded_up(promise.epsilon, 4),
        "delta": small(promise.delta),
        "rho (zCDP)": rounded_up(guarantee.rho, 4),
        "neighbours": guarantee.adjacency.value,
        "scope": guarantee.scope,
    }


def scope(report: Report) -> str:
    """Whose budgets add up to the promise."""
    promise = report.promise
    name = promise.guarantee.scope
    if promise.scope_rho == promise.guarantee.rho:
        said = f"The promise holds for everything that is released in scope {name}."
    else:
        said = (
            f"The promise is that of this campaign. Campaigns of scope {name} add up: all of them "
            f"together may spend rho = {rounded_up(promise.scope_rho, 4)}, which is epsilon = "
            f"{rounded_up(promise.scope_epsilon, 4)}."
        )
    return f"{said} {periods_shown(report)}".rstrip()


def periods_shown(report: Report) -> str:
    """What a report of several periods promises altogether."""
    _, newest = parts_of(report.promise.guarantee.scope)
    if newest is None:
        return ""
    first = Period.of(report.spec.campaign.start, newest.renewal)
    count = 1
    while first != newest:
        first, count = first.next, count + 1
    if count == 1:
        return renewed(report.promise)
    return (
        f"Budgets renew every {newest.renewal}. This report has {count} of them, each of which "
        f"may have cost everybody rho = {rounded_up(report.promise.scope_rho, 4)}: together "
        f"rho = {rounded_up(count * report.promise.scope_rho, 4)}."
    )


def neighbours(report: Report) -> str:
    if report.promise.guarantee.adjacency is Adjacency.ADD_REMOVE:
        return (
            "The data are compared with what they would be without any one person at all. Either "
            "way the same numbers could have come out, about as likely as the odds below say."
        )
    return (
        "The data are compared with what they would be had any one person done anything else. "
        "Either way the same numbers could have come out, about as likely as the odds below say."
    )


def odds(promise: Promise) -> str:
    """Someone who knows all the others and starts at even odds is the worst case to think of."""
    epsilon, delta = promise.epsilon, promise.delta
    # Past this, the factor says no more than "certain" and would not fit a float for long.
    factor = "more than a million"
    if epsilon < 13:
        factor = f"{float(rounded_up(exp(epsilon), 3)):,.10g}"
    sure = 1 / (1 + exp(-epsilon))
    guess = "can become practical certainty"
    if sure < 0.9999:
        guess = f"becomes at most {rounded_up(100 * sure, 4)}%"
    return (
        f"Someone who reads every number of this campaign, and knows everything about everybody "
        f"else, can move their odds about one person by at most a factor of {factor}, apart from "
        f"a chance of about {one_in(delta)}. A guess of 50% {guess}."
    )


def strength(promise: Promise) -> str:
    epsilon = promise.epsilon
    if epsilon <= _SMALL_EPSILON:
        return "That is a strong promise: even in this worst case, a guess stays a guess."
    if epsilon <= _LARGE_EPSILON:
        return (
            "That is a moderate promise: in this worst case a guess gets better, and stays open "
            "to doubt."
        )
    return (
        "Read strictly, that is a weak promise: in this worst case an observer could become "
        "nearly sure. It still bounds what all slots together tell, and most observers know far "
        "less. A smaller rho promises more, for more noise."
    )


def bounds(report: Report) -> str:
    """How much of one person counts, and what the intervals make of the rest."""
    bounded = report.measured[-1].bound is not None
    return _slot_bounds(report) if bounded else _personal_budgets(report)


def _slot_bounds(report: Report) -> str:
    every = [each.bound for each in report.measured if each.bound is not None]
    most, varying = _conversions(report, f"{min(every)}", f"{max(every)}")
    word = report.timeline.word
    article = "an" if word == "hour" else "a"
    limit = (
        f"One person counts for at most {most} {article} {word}{varying}. What lies above is cut"
    )
    if report.estimates_cut:
        return f"{limit}. {_cut_so_far(report)}"
    return f"{limit}, and the intervals do not include that: they cover the noise only."


def _personal_budgets(report: Report) -> str:
    every = [each.allowance for each in report.measured if each.allowance is not None]
    if report.measured[-1].multipliers:
        # Rows since then hold the past in the same way.
        every = every[-1:]
    size, varying = _conversions(report, about(min(every)), about(max(every)))
    word = report.timeline.word
    at_once = f"{'on' if word == 'day' else 'in'} one {word}"
    return (
        f"Every person has one budget for the whole campaign. It is about as large as {size} with "
        f"one publisher {at_once}{varying}. What goes beyond is cut. {_cut_so_far(report)}"
    )


def _conversions(report: Report, lowest: str, highest: str) -> tuple[str, str]:
    """A number of conversions in words, and what it depends on if it varies."""
    cap, varies = report.measure.value_cap, lowest != highest
    count = f"{lowest} to {highest}" if varies else lowest
    each = "" if cap is None else f" of {amount(cap, 2)} each"
    return (
        f"{_counted(count, report.measure.metric)}{each}",
        f", depending on the {report.timeline.word}" if varies else "",
    )


def _counted(count: str, metric: MetricName) -> str:
    """Where people are counted once, each figure that has somebody is one count."""
    noun = {"impressions": "impression", "clicks": "click"}.get(metric, "conversion")
    noun = "count" if metric in COUNTED_ONCE else noun
    return f"{count} {noun}{'' if count == '1' else 's'}"


def _cut_so_far(report: Report) -> str:
    """What was cut, and what of it is in which figures."""
    total, metric = report.measured[-1].running_totals[0], report.measure.metric
    shown = decimals_of(metric, total.standard_error)

    def in_words(figure: float) -> str:
        count = amount(figure, shown)
        return f"{count} of value" if metric == "value" else _counted(count, metric)

    newest = report.measured[-1]
    if newest.allowance is not None and not newest.multipliers:
        # As version 0.1 released it.
        return (
            f"So far that is about {in_words(total.cut)} in all, counted privately, with noise of "
            "its own. The upper ends of the intervals include it."
        )
    added = "So far, none of that can be told from noise."
    if round(total.added, shown) > 0:
        parts = "their totals" if newest.allowance is None else "the roots of their totals"
        added = (
            f"So far that is about {in_words(total.added)}, counted privately, with noise of its "
            f"own. The estimates include it, shared out among publishers by {parts}."
        )
    more = ""
    if round(total.cut, shown) > 0:
        more = f" The upper ends of the intervals leave room for {in_words(total.cut)} more."
    return added + more
