"""Attribution beside lift: how much was caused for each conversion that was credited.

Both are of the same arm: credits of the publishers that it sees, and those that the arm which it is
compared with does not. Where nobody else sees anything, all credits are the arm's; otherwise a
measure by publisher and arm tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from adsbpc.model import Measure
from adsbpc.model.lift_spec import LiftSection
from adsbpc.model.measure_spec import ARM, PUBLISHER
from adsbpc.report.cells import Cell
from adsbpc.report.lift import Lift
from adsbpc.report.ratios import fieller

if TYPE_CHECKING:
    from adsbpc.report.report import Report


@dataclass(frozen=True)
class Calibration:
    """How much was caused in an arm for each unit that attribution credits there, of everything
    that it sees or of the publishers `withheld` from the other arm. `factor`, `low` and `high` are
    None where credits cannot be told from zero."""

    measure: str
    arm: str
    control: str
    withheld: tuple[str, ...]
    attributed: float
    incremental: float
    factor: float | None
    low: float | None
    high: float | None


def calibrations_of(report: Report, lifts: Sequence[Lift]) -> list[Calibration]:
    """After the newest slot."""
    found = []
    for each in lifts:
        if each.keys or each.slot != report.newest.slot:
            continue
        cells = _credited(report, each)
        if not cells:
            continue
        ends = factor_of(each.incremental, each.standard_error, cells, report.lens.reach)
        factor, low, high = ends or (None, None, None)
        found.append(
            Calibration(
                each.measure, each.arm, each.control, each.withheld,
                sum(cell.estimate for cell in cells), each.incremental, factor, low, high,
            )
        )  # fmt: skip
    return found


def factor_of(
    incremental: float, error: float, credited: Sequence[Cell], reach: float
) -> tuple[float, float, float] | None:
    """What was caused for each credited unit, with its interval (Fieller); None where credits may
    be nothing. Noise and sampling are in the interval; that the same people are in both figures is
    not, which makes it too wide for factors up to 2."""
    attributed, cut = (sum(getattr(c, name) for c in credited) for name in ("estimate", "cut"))
    # Publishers have noise of their own; that of the sum of everything only pulls them apart.
    variance = sum(cell.standard_error**2 for cell in credited)
    of_cut = sum(cell.cut_error for cell in credited) ** 2
    # What was cut is missing from credits, never added to them.
    lowest = fieller(incremental, attributed + cut, error**2, variance + of_cut, 0.0, reach)
    highest = fieller(incremental, attributed, error**2, variance, 0.0, reach)
    if lowest is None or highest is None or attributed <= 0:
        return None
    return incremental / attributed, min(lowest[0], highest[0]), max(lowest[1], highest[1])


def _credited(report: Report, lift: Lift) -> list[Cell]:
    """What attribution credits in the arm to the publishers that lift is about; nothing where that
    is not known."""
    spec, section = report.spec, report.spec.lift
    assert section is not None
    of = next(each for each in spec.measures if each.name == lift.measure)
    for measure in spec.measures:
        if (measure.metric, measure.value_cap) != (of.metric, of.value_cap):
            continue
        names = [each.name for each in measure.layout.dimensions]
        if names[:2] == [PUBLISHER, ARM]:
            return _of_arm(report, section, measure, lift)
        if names[0] == PUBLISHER and _alone(section, lift.arm):
            return [cell for cell in report.newest_totals(measure) if not cell.keys]
    return []


def _of_arm(report: Report, section: LiftSection, measure: Measure, lift: Lift) -> list[Cell]:
    return [
        cell
        for cell in report.newest_totals(measure, deepest=2)
        if len(cell.keys) == 2
        and cell.keys[1] == lift.arm
        and section.shows(lift.arm, cell.keys[0])
        and not section.shows(lift.control, cell.keys[0])
    ]


def _alone(section: LiftSection, arm: str) -> bool:
    """Whether nobody outside the arm sees anything: everybody is in it or in the control."""
    whole = sum(Fraction(str(share)) for share in section.shares.values())
    return section.treated == (arm,) and whole == 1
