"""From a campaign's sources to the rows that attribution reads.

    conversions  conversion_key, user_id, conversion_number, conversion_id, slot, time_us, value
                 (placement.py says in which slot each is)
    impressions  user_id, time_us, is_click, publisher_number, touch_order
    arrivals     the same in the slots in which they arrive, though others may wait for a touch
    history      those of all slots so far, where somebody's past matters
    exposures    user_id, slot, time_us, is_click, publisher_index
    publishers   publisher_number, publisher_id, publisher_index
    quarantine   bad rows, with a reason

Dimensions add a column each, with the place in their list: those of conversions to the first table,
those of impressions to exposures and to publishers, where a publisher then has a number for each
place. Impressions are what conversions may have as touches; exposures are those of the slots
themselves, in the slot of their own time: they have no other moment of arrival.

They hold good rows of the campaign's advertiser only. Of a user with very many conversions in a
slot, the first `max_conversions` are there. `touch_order` sorts a user's impressions by time and,
at one instant, by publisher id: it decides every tie, on every engine, and
`touch_order % publisher_count` is the publisher's number. `publisher_index` is the position in the
public list; publishers outside it share the last one. Where slots are held back for late
impressions, these say when they arrived (`arrived_us`), and conversions by when a touch of theirs
has to (`settled_us`).

One slot reads what it needs: rows of other times are left where they are, and of impressions those
of people who convert in the slot are kept, and where impressions are counted those of the slot. Bad
rows are reported with the slots that read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adsbpc.engines import Engine, Relation
from adsbpc.errors import SpecError
from adsbpc.events.impressions import (
    exposures_sql,
    in_reach,
    publishers_sql,
    touch_order,
    touches_sql,
)
from adsbpc.events.moments import Window
from adsbpc.events.opening import OpenedSources, OtherRows, Reach, open_sources
from adsbpc.events.placement import conversions_sql
from adsbpc.events.schema import TIMESTAMP_SHAPE, Reason
from adsbpc.events.validation import (
    SourceReading,
    conversions_checked,
    impressions_checked,
    repeated_marks,
    without_repeats,
)
from adsbpc.model.spec import CampaignSpec

_IMPRESSION_COLUMNS = (
    "user_id, publisher_id, advertiser_id, kind, event_id, timestamp_text, time_us"
)
_CONVERSION_COLUMNS = (
    "user_id, advertiser_id, kind, value, event_id, timestamp_text, time_us, arrived_us"
)


@dataclass(frozen=True)
class SourceCounts:
    """Usable rows of a source, bad ones by reason, and what a timestamp that does not parse looks
    like, with 9 for every digit and a for every letter. `late` ones are usable, and arrived when
    conversions right after them had waited in vain."""

    usable: int
    bad: Mapping[str, int]
    unreadable_timestamp: str | None
    late: int = 0

    @property
    def broken(self) -> int:
        """Bad rows that are nobody else's."""
        return sum(self.bad.values()) - self.bad.get(Reason.OTHER_ADVERTISER, 0)


@dataclass(frozen=True)
class EventTables:
    """The rows that stand in the engine's session, and what is known about them."""

    engine: Engine
    conversions: Relation
    impressions: Relation
    exposures: Relation
    publishers: Relation
    quarantine: Relation
    checked: Mapping[str, Relation]
    publisher_count: int
    text_users: bool
    arrivals: Relation
    conversion_dimensions: tuple[str, ...] = ()
    impression_dimensions: tuple[str, ...] = ()
    # How late a touch of a slot that is held back may arrive; None if arrivals do not matter.
    late_after_us: int | None = None
    # None where nobody's past matters.
    history: Relation | None = None
    # Bad rows, by source, that were counted where they stand: those of other advertisers, where
    # several campaigns share a scan.
    others: Mapping[str, OtherRows] = field(default_factory=dict)

    @property
    def by_arrival(self) -> bool:
        return self.late_after_us is not None

    def quarantined(self) -> dict[tuple[str, str], int]:
        """Rows in quarantine by (source, reason): for the operator, never for a report."""
        found = self.engine.rows(
            "count quarantine",
            f"SELECT source, reason, count(*) FROM {self.quarantine}"
            " GROUP BY source, reason ORDER BY source, reason",
        )
        counts = Counter({(source, reason): count for source, reason, count in found})
        for source, others in self.others.items():
            counts.update({(source, reason): count for reason, count in others.counts.items()})
        return dict(sorted(counts.items()))

    def conversion_count(self) -> int:
        """Good conversions in the slots that were read: for the operator, never for a report."""
        ((count,),) = self.engine.rows(
            "count conversions", f"SELECT count(*) FROM {self.conversions}"
        )
        return int(count)

    def late_count(self) -> int:
        """Touches of the people who were read that arrived when conversions right after them had
        waited in vain: for the operator, never for a report."""
        if self.late_after_us is None:
            return 0
        ((count,),) = self.engine.rows(
            "count late rows",
            f"SELECT count(*) FROM {self.impressions} AS touches"
            f" WHERE arrived_us - time_us > {self.late_after_us}",
        )
        return int(count)

    def source_counts(self) -> dict[str, SourceCounts]:
        """What was found in each source: one more look at impressions. For the operator, never for
        a report."""
        return {name: self._counts_of(name, rows) for name, rows in self.checked.items()}

    def _counts_of(self, source: str, rows: Relation) -> SourceCounts:
        is_late = "FALSE"
        if self.late_after_us is not None and source == "impressions":
            is_late = f"arrived_us - time_us > {self.late_after_us}"
        found = self.engine.rows(
            "count rows",
            f"SELECT reason, count(*), max({TIMESTAMP_SHAPE}),"
            f" count(CASE WHEN {is_late} THEN 1 END)"
            f" FROM {rows} GROUP BY reason ORDER BY reason",
        )
        bad = Counter({reason: count for reason, count, *_ in found if reason is not None})
        shapes = [shape for reason, _, shape, _ in found if reason == Reason.BAD_TIMESTAMP]
        others = self.others.get(source)
        if others is not None:
            bad.update(others.counts)
            shapes.append(others.unreadable_timestamp)
        return SourceCounts(
            sum(count for reason, count, *_ in found if reason is None),
            dict(sorted(bad.items())),
            max((shape for shape in shapes if shape is not None), default=None),
            sum(late for reason, *_, late in found if reason is None),
        )

    def write_quarantine(self, path: Path) -> None:
        self.engine.write_parquet("write quarantine", f"SELECT * FROM {self.quarantine}", path)


def read_events(
    spec: CampaignSpec,
    engine: Engine,
    slot: int | range | None = None,
    through: int | None = None,
    opened: OpenedSources | None = None,
) -> EventTables:
    """Check and lay out a campaign's events: those of all slots, of one or some that follow each
    other, or of everybody up to one. Its sources are opened, unless they have been for several
    campaigns."""
    opened = opened or open_sources(spec, engine)
    impressions, conversions = opened.impressions, opened.conversions
    last_slot = through or spec.campaign.slots
    slots = range(1, last_slot + 1) if slot is None else some_slots(slot)
    if not 1 <= slots[0] <= slots[-1] <= last_slot:
        raise SpecError(f"slot = {slot}: expected a number from 1 to {last_slot}")
    reach = Reach.of(spec, slots, conversions)
    starts_at, ends_at, lateness = reach.starts_at, reach.ends_at, reach.lateness
    by_arrival = spec.events.settle is not None

    def window(source: str, reading: SourceReading) -> Window | None:
        return None if slot is None else reach.window(source, reading)

    # The rows of one slot are few, and are kept; those of all slots stay where they are. So are
    # conversions with ids, which are gone through twice, and are few beside impressions.
    parsed = _rows(
        engine,
        "conversions_parsed",
        conversions_checked(conversions, spec, window("conversions", conversions)),
        kept=slot is not None and "event_id" in conversions.fields,
    )
    # The first to arrive is kept, so that a repeat can never displace what was released.
    further = conversions.further_columns
    checked = _without_repeats(
        engine, conversions, parsed, _CONVERSION_COLUMNS + further, "",
        f"arrived_us, time_us, coalesce(kind, ''), coalesce(value, -1){further}",
    )  # fmt: skip
    wanted = f"arrived_us >= {reach.reads_from} AND arrived_us < {ends_at}"
    read_conversions = _rows(
        engine, "conversions_read", _good_or_bad(checked, wanted), kept=slot is not None
    )
    good_conversions = _good(read_conversions, checked, wanted)

    parsed = Relation.of(impressions_checked(impressions, spec, window("impressions", impressions)))
    checked = _without_repeats(
        engine, impressions, parsed,
        _IMPRESSION_COLUMNS + (", arrived_us" * by_arrival) + impressions.further_columns,
        # As with conversions: a repeat must not put off what was released.
        "publisher_id", "arrived_us, " * by_arrival + f"time_us, kind{impressions.further_columns}",
    )  # fmt: skip
    wanted = in_reach(spec, starts_at - lateness, ends_at)
    if by_arrival:
        wanted += f" AND arrived_us < {ends_at + spec.events.held_back}"
    reachable = Relation.of(_good_or_bad(checked, wanted))
    if slot is not None:
        kept = (
            f"user_id IN (SELECT user_id FROM {good_conversions} AS good"
            f" WHERE arrived_us >= {starts_at})"
        )
        if spec.counts_impressions:
            # What the slot itself has counts, whoever sees it.
            kept = f"({kept} OR time_us >= {reach.begins_at})"
        wanted += f" AND {kept}"
    read_impressions = _rows(
        engine, "impressions_read", _good_or_bad(checked, wanted), kept=slot is not None
    )

    good_impressions = _good(read_impressions, checked, wanted)

    publishers = engine.table("publishers", publishers_sql(spec, good_impressions, impressions))
    ((publisher_count,),) = engine.rows("count publishers", f"SELECT count(*) FROM {publishers}")
    order = touch_order((reach.first_moment, ends_at), publisher_count)
    placed = engine.table(
        "conversions",
        conversions_sql(spec, slots, good_conversions, good_impressions, further),
        row_key="conversion_key",
    )

    def arriving(some: range) -> Relation:
        return Relation.of(
            conversions_sql(spec, some, good_conversions, good_impressions, further, waits=False)
        )

    return EventTables(
        engine,
        placed,
        Relation.of(touches_sql(good_impressions, publishers, impressions, order, by_arrival)),
        Relation.of(
            exposures_sql(
                spec, good_impressions, publishers, impressions, (reach.begins_at, ends_at)
            )
        ),
        publishers,
        Relation.of(_quarantine(read_impressions, read_conversions)),
        {"impressions": reachable, "conversions": read_conversions},
        publisher_count,
        conversions.text_users,
        arriving(slots) if spec.events.wait else placed,
        tuple(conversions.dimensions),
        tuple(impressions.dimensions),
        spec.events.held_back + spec.events.wait if by_arrival else None,
        arriving(range(1, slots.stop)) if spec.looks_back else None,
        opened.others,
    )


def some_slots(slot: int | range) -> range:
    return range(slot, slot + 1) if isinstance(slot, int) else slot


def _without_repeats(
    engine: Engine, reading: SourceReading, parsed: Relation, columns: str, sender: str, order: str
) -> Relation:
    """The parsed rows, with repeated event ids among the reasons."""
    if "event_id" not in reading.fields:
        return parsed
    marks = engine.table("repeated", repeated_marks(parsed))
    ((repeated,),) = engine.rows("count repeated", f"SELECT count(*) FROM {marks}")
    if not repeated:
        return parsed
    return Relation.of(without_repeats(parsed, marks, columns, sender, order))


def _rows(engine: Engine, what: str, sql: str, kept: bool) -> Relation:
    return engine.table(what, sql) if kept else Relation.of(sql)


def _good_or_bad(checked: Relation, wanted: str) -> str:
    """Good rows that are wanted, and all bad ones."""
    return f"SELECT * FROM {checked} WHERE reason IS NOT NULL OR ({wanted})"


def _good(read: Relation, checked: Relation, wanted: str) -> Relation:
    """The good ones of those that were read: of rows that stay where they are, without looking for
    bad ones first, which would judge every row twice."""
    if read.is_table:
        return Relation.of(f"SELECT * FROM {read} WHERE reason IS NULL")
    return Relation.of(f"SELECT * FROM {checked} WHERE reason IS NULL AND ({wanted})")


def _quarantine(impressions: Relation, conversions: Relation) -> str:
    moment = "coalesce(timestamp_text, moment_text(time_us)) AS timestamp"
    return f"""
SELECT 'impressions' AS source, reason, CAST(user_id AS STRING) AS user_id, advertiser_id,
  publisher_id, {moment}, kind, CAST(NULL AS DOUBLE) AS value, event_id
FROM {impressions} WHERE reason IS NOT NULL
UNION ALL
SELECT 'conversions' AS source, reason, CAST(user_id AS STRING) AS user_id, advertiser_id,
  CAST(NULL AS STRING) AS publisher_id, {moment}, kind, value, event_id
FROM {conversions} WHERE reason IS NOT NULL"""
