"""One report of several periods, one after another, as if they were one campaign.

Noise of different periods is independent, and every figure is linear in what was released, so sums
over periods add up: totals, variances, and what was counted as cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from adsbpc.model import Answers, CampaignSpec, Measure, Measured, Release, RunningNoise
from adsbpc.model.periods import parts_of
from adsbpc.model.running_noise import Cut, CutColumn
from adsbpc.model.spend import Spend
from adsbpc.report.ranges import Totals, range_answers, totals_without_cut
from adsbpc.report.report import Report

_SINCE_THE_START = "prefix"


def joined_report(
    reports: Sequence[Report], spend_of: Callable[[CampaignSpec], Spend | None]
) -> Report:
    """Of the newest reports, as far back as they count the same. Measures that count people once
    are left out, since every period counts people anew: who asks for one of those alone has the
    newest period."""
    newest = reports[-1]
    asked = None if newest.measure_name is None else newest.measure
    counted = [each for each in newest.spec.measures if not each.layout.once]
    alike = _alike(reports, counted)
    if len(alike) == 1 or not counted or (asked is not None and asked not in counted):
        return newest
    joined = _Joined(tuple(alike), tuple(counted))
    spec = joined.spec()
    return replace(
        newest,
        spec=spec,
        releases=tuple(joined.releases(spec)),
        spend=spend_of(spec),
        noise_of=joined.noise,
    )


def _alike(reports: Sequence[Report], measures: Sequence[Measure]) -> list[Report]:
    """The newest of them, as long as each follows on the one before and has these measures."""
    found = [reports[-1]]
    wanted = _shape(reports[-1], measures)
    for report in reversed(reports[:-1]):
        names = {each.name for each in report.spec.measures}
        follows = report.spec.grid.ends_at == found[0].spec.grid.starts_at
        if not follows or not all(each.name in names for each in measures):
            break
        own = [next(m for m in report.spec.measures if m.name == each.name) for each in measures]
        if _shape(report, own) != wanted:
            break
        found.insert(0, report)
    return found


def _shape(report: Report, measures: Sequence[Measure]) -> list[object]:
    """What has to be the same for figures of two periods to add up."""
    shape: list[object] = [report.spec.campaign.slot, report.spec.campaign.timezone]
    for each in measures:
        newest = report.of_measure(each)[-1]
        cut = report.noise_of(each.name, (0, newest.slot)).cut if report.noise_of else None
        columns = None if cut is None else (cut.is_added, len(cut.columns))
        shape += [each.metric, each.value_cap, each.currency, newest.dimensions, columns]
    return shape


@dataclass(frozen=True)
class _Joined:
    """Reports of periods, in order; all but the last are complete."""

    reports: tuple[Report, ...]
    measures: tuple[Measure, ...]

    @property
    def _offsets(self) -> list[int]:
        """How many slots there are before each period, and in all of them."""
        return list(accumulate((each.spec.campaign.slots for each in self.reports), initial=0))

    def spec(self) -> CampaignSpec:
        """As if it were one campaign, which ends with the newest period."""
        first, newest = self.reports[0].spec, self.reports[-1].spec
        names = {each.name for each in self.measures}
        own = newest.campaign.model_copy(
            update={
                "name": parts_of(newest.campaign.name)[0],
                "start": first.campaign.start,
                "slots": self._offsets[-1],
            }
        )
        kept = tuple(each for each in newest.measure if each.name in names)
        spec = newest.model_copy(update={"campaign": own, "measure": kept})
        # A copy has what was computed of other measures.
        spec.__dict__.pop("measures", None)
        return spec

    def noise(self, measure: str, boundaries: Sequence[int]) -> RunningNoise:
        """Of totals after so many slots of all periods together."""
        parts = [
            _placed(report, measure, [min(max(b - offset, 0), end - offset) for b in boundaries])
            for report, offset, end in zip(
                self.reports, self._offsets, self._offsets[1:], strict=False
            )
        ]
        rows = accumulate((len(each.variances) for each in parts), initial=0)
        stretches = [
            replace(stretch, first=stretch.first + before)
            for each, before in zip(parts, rows, strict=False)
            for stretch in each.stretches
        ]
        return RunningNoise(
            tuple(boundaries),
            [
                [weight for each in parts for weight in each.weights[place]]
                for place in range(len(boundaries))
            ],
            tuple(variance for each in parts for variance in each.variances),
            tuple(stretches),
            _joined_cut([each.cut for each in parts]),
        )

    def releases(self, spec: CampaignSpec) -> list[Release]:
        found: list[Release] = []
        before: dict[str, Totals] = {}
        for report, offset in zip(self.reports, self._offsets, strict=False):
            of_measures = [self._measured(report, offset, each, before) for each in self.measures]
            for release, measured in zip(
                report.releases, zip(*of_measures, strict=True), strict=True
            ):
                shifted = {
                    "slot": release.slot + offset,
                    "campaign": spec.campaign.name,
                    "measures": measured,
                }
                found.append(release.model_copy(update=shifted))
        return found

    def _measured(
        self, report: Report, offset: int, measure: Measure, before: dict[str, Totals]
    ) -> list[Measured]:
        """A period's slots with totals since the start. `before` has those of earlier periods by
        measure, and has this one's, too, at the end."""
        own = report.of_measure(measure)
        noise = self.noise(measure.name, [0, *(offset + each.slot for each in own)])
        spread = () if noise.cut is None else noise.cut.parts[-1]
        found, start, totals = [], before.get(measure.name), Totals()
        for place, each in enumerate(own, start=1):
            totals = totals_without_cut(each)
            if start is not None:
                totals = [
                    [a + b for a, b in zip(*sums, strict=True)]
                    for sums in zip(start, totals, strict=True)
                ]
            slot = offset + each.slot
            running = range_answers(measure, noise, (0, place), totals, f"prefix 1..{slot}")
            found.append(
                each.model_copy(
                    update={
                        "slot": slot,
                        "spread": spread,
                        "running_totals": tuple(running),
                        "slot_totals": tuple(_shifted(a, offset) for a in each.slot_totals),
                        "answers": tuple(_run_on(each.answers, running, offset)),
                    }
                )
            )
        before[measure.name] = totals
        return found


def _placed(report: Report, measure: str, places: Sequence[int]) -> RunningNoise:
    """A period's noise at its own boundaries, some of which may come several times."""
    assert report.noise_of is not None
    several = sorted(set(places))
    noise = report.noise_of(measure, several)
    at = [several.index(place) for place in places]
    cut = noise.cut
    if cut is not None:
        columns = tuple(
            replace(each, counts=tuple(each.counts[i] for i in at)) for each in cut.columns
        )
        cut = replace(cut, columns=columns)
    weights = [noise.weights[i] for i in at]
    return replace(noise, boundaries=tuple(places), weights=weights, cut=cut)


def _joined_cut(cuts: Sequence[Cut | None]) -> Cut | None:
    """Counts add up; how they are shared out is as in the newest period."""
    known = [each for each in cuts if each is not None]
    if not known:
        return None
    columns = tuple(
        CutColumn(
            tuple(sum(counts) for counts in zip(*(each.counts for each in same), strict=True)),
            tuple(variance for each in same for variance in each.variances),
        )
        for same in zip(*(each.columns for each in known), strict=True)
    )
    return replace(known[-1], columns=columns)


def _run_on(answers: Sequence[Answers], running: Sequence[Answers], offset: int) -> list[Answers]:
    """Answers to the workload; totals since a period's start are since the first one's."""
    found: list[Answers] = []
    for each in answers:
        if each.query.split()[0] == _SINCE_THE_START and each.span is not None:
            found.append(running[len(each.view)])
        else:
            found.append(_shifted(each, offset))
    return found


def _shifted(answers: Answers, offset: int) -> Answers:
    """The same for slots that are counted from the first period on."""
    if answers.span is None or not offset:
        return answers
    first, last = (slot + offset for slot in answers.span)
    word = answers.query.split()[0]
    query = f"slot {last}" if word == "slot" else f"{word} {first}..{last}"
    return replace(answers, query=query, span=(first, last))
