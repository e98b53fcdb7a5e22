"""All measures of a campaign: each has a mechanism of its own, and what they cost adds up.

A campaign with one measure keeps its plan and its steps as that measure's mechanism does; with
several, both are kept by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from adsbpc.errors import PrivacyError
from adsbpc.mechanisms.interface import Mechanism, Rows, State
from adsbpc.model.measure import Measure
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release import Measured, Release
from adsbpc.model.running_noise import RunningNoise
from adsbpc.privacy import Randomness


@dataclass(frozen=True)
class MeasuresState:
    """What the slots so far leave to the next one, by measure."""

    states: Mapping[str, State]

    @property
    def next_slot(self) -> int:
        slots = {state.next_slot for state in self.states.values()}
        if len(slots) != 1:
            raise PrivacyError(f"measures are at different slots: {sorted(slots)}")
        return slots.pop()

    def last_step(self, kept: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """SECRET, for JSON: what the last slot added. `kept` is what else is kept, by measure."""
        steps = {
            name: {**state.last_step(), **kept.get(name, {})} for name, state in self.states.items()
        }
        return next(iter(steps.values())) if len(steps) == 1 else {"measures": steps}

    @property
    def last_secret(self) -> Any:
        """SECRET, for JSON: what releases do not tell of the state."""
        hidden = {name: state.last_secret for name, state in self.states.items()}
        return next(iter(hidden.values())) if len(hidden) == 1 else hidden


def step_of(step: Mapping[str, Any], measure: str) -> dict[str, Any]:
    """What a campaign's step has of a measure."""
    found: dict[str, Any] = step["measures"][measure] if "measures" in step else dict(step)
    return found


@dataclass(frozen=True)
class Measures:
    """Measures with their planned mechanisms, in the order of the campaign file."""

    runs: tuple[tuple[Measure, Mechanism], ...]

    @property
    def adopts_from_rows(self) -> bool:
        return any(mechanism.adopts_from_rows for _, mechanism in self.runs)

    def stored_plan(self) -> StoredPlan:
        plans = {measure.name: mechanism.stored_plan() for measure, mechanism in self.runs}
        if len(plans) == 1:
            return next(iter(plans.values()))
        return StoredPlan((), measures=plans)

    def running_noise(
        self, releases: Sequence[Release], measure: str, boundaries: Sequence[int]
    ) -> RunningNoise:
        """How far totals of one of the measures are off together."""
        (mechanism,) = [each for own, each in self.runs if own.name == measure]
        return mechanism.running_noise([each.of(measure) for each in releases], boundaries)

    def resume(self, steps: Sequence[Mapping[str, Any]]) -> MeasuresState:
        """The state after all of these slots, in order."""
        return MeasuresState(
            {
                measure.name: mechanism.resume([step_of(step, measure.name) for step in steps])
                for measure, mechanism in self.runs
            }
        )

    def release(
        self, state: MeasuresState, rows_of: Callable[[Measure], Rows], randomness: Randomness
    ) -> tuple[tuple[Measured, ...], MeasuresState]:
        """Release the next slot of every measure. The old state is left as it is."""
        released, states = [], dict[str, State]()
        for measure, mechanism in self.runs:
            with mechanism.open_rows(rows_of(measure)) as people:
                before = state.states[measure.name]
                drawn, states[measure.name] = mechanism.release(before, people, randomness)
            released.append(Measured(**dict(drawn), measure=measure.name, metric=measure.metric))
        return tuple(released), MeasuresState(states)

    def adopt(
        self, state: MeasuresState, rows_of: Callable[[Measure], Rows], release: Release
    ) -> list[MeasuresState]:
        """The states that a released slot may have left, of which one is true. Draws nothing."""
        names = [measure.name for measure, _ in self.runs]
        if [each.measure for each in release.measures] != names:
            raise PrivacyError(f"slot {release.slot}: was not released for the measures {names}")
        choices = [
            mechanism.adopt(state.states[measure.name], rows_of(measure), release.of(measure.name))
            for measure, mechanism in self.runs
        ]
        return [
            MeasuresState(dict(zip(names, chosen, strict=True))) for chosen in product(*choices)
        ]
