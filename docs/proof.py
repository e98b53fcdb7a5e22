"""Counts the files that docs/proof.md lists, and writes the table: python docs/proof.py."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "proof.md"
_START, _END = "<!-- files -->\n", "<!-- end of files -->\n"

# What would go wrong, and the files in which it could.
PARTS: dict[str, tuple[str, ...]] = {
    "noise, sensitivity, filter, accounting": ("privacy/*.py",),
    "amounts, grid, what a release holds": (
        "model/guarantee.py", "model/grid.py", "model/slots.py", "model/periods.py",
        "model/release.py",
        "model/layout.py", "model/measure.py", "model/measure_spec.py", "model/plan.py",
        "model/formats.py", "model/release_formats.py", "model/arms.py", "model/lift_spec.py",
    ),
    "how rows are read": (
        "engines/csv_dialect.py", "engines/csv_lines.py", "engines/spark_lines.py",
        "engines/parquet_mending.py", "engines/file_copies.py", "engines/duckdb_engine.py",
        "engines/spark_parquet.py", "engines/spark_engine.py", "engines/outer_tables.py",
        "engines/spark_tables.py", "engines/spark_session.py",
    ),
    "which rows are good, and whose slot they are in": (
        "events/schema.py", "events/opening.py", "events/shared.py", "events/validation.py",
        "events/tables.py", "events/impressions.py", "events/moments.py",
        "events/placement.py", "events/holdout.py", "events/arms.py",
    ),
    "a user's credits follow from that user": (
        "attribution/journeys.py", "attribution/models.py", "attribution/fitted.py",
        "attribution/fit_journeys.py", "attribution/counts.py",
    ),
    "caps, filter and counts in SQL": (
        "contributions/engine.py", "contributions/account_books.py",
        "contributions/engine_accounts.py", "contributions/numbering_sql.py",
        "contributions/columns_sql.py", "contributions/admission_sql.py",
        "contributions/renewal_sql.py", "contributions/filter_sql.py",
        "contributions/long_books.py", "contributions/long_accounts.py",
        "contributions/fit_counts.py",
    ),
    "noise is scaled to what was kept, and every look is charged": (
        "mechanisms/adsbpc.py", "mechanisms/bounds.py", "mechanisms/by_rows/measurement.py",
        "mechanisms/by_rows/mechanism.py", "mechanisms/by_rows/state.py",
        "mechanisms/by_rows/planning.py", "mechanisms/by_slots/mechanism.py",
        "mechanisms/by_slots/state.py", "mechanisms/by_slots/planning.py",
        "mechanisms/by_slots/mixes.py",
        "mechanisms/strategy_choice.py", "mechanisms/guarantees.py", "mechanisms/planning.py",
        "mechanisms/interface.py", "mechanisms/measures.py", "mechanisms/people_once.py",
    ),
    "charged, drawn and published once": (
        "durable.py", "storage/*.py", "ledger/*.py", "campaign/release.py", "campaign/restore.py",
        "campaign/books.py", "campaign/book_seals.py", "campaign/book_uses.py",
        "engines/spark_folders.py",
        "campaign/release_folder.py", "campaign/fits.py",
        "campaign/declared_fits.py", "campaign/data_path.py", "campaign/planning.py",
        "campaign/promise.py", "campaign/overview.py", "campaign/erasure.py", "campaign/run.py",
        "campaign/series.py", "campaign/together.py",
    ),
    "what the service shows, to whom, and when": (
        "service/releases/publication.py", "service/ingest/event_ids.py",
        "service/ingest/batches.py", "service/ingest/intake.py", "service/ingest/event_files.py",
        "service/ingest/lateness.py", "service/ingest/deliveries.py", "service/ingest/removal.py",
        "service/releases/retention.py", "service/releases/lifecycle.py",
        "service/auth/permissions.py", "service/auth/access.py", "service/http/monitoring.py",
        "service/releases/statement_api.py", "telemetry.py",
    ),
}  # fmt: skip


def files_of(patterns: tuple[str, ...]) -> list[Path]:
    source = ROOT / "src" / "adsbpc"
    found = [file for pattern in patterns for file in sorted(source.glob(pattern))]
    missing = [pattern for pattern in patterns if not list(source.glob(pattern))]
    if missing:
        raise SystemExit(f"{missing[0]}: no such file below src/adsbpc. Correct docs/proof.py")
    return found


def table() -> str:
    lines = ["| what could go wrong | files | lines |", "|---|---|---|"]
    total = 0
    for part, patterns in PARTS.items():
        counted = {
            file.relative_to(ROOT / "src" / "adsbpc"): len(file.read_text().splitlines())
            for file in files_of(patterns)
        }
        total += sum(counted.values())
        named = ", ".join(f"`{file}` {count}" for file, count in counted.items())
        lines.append(f"| {part} | {named} | {sum(counted.values()):,} |")
    lines.append(f"| all of them | | {total:,} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    before, _, rest = text.partition(_START)
    _, _, after = rest.partition(_END)
    return f"{before}{_START}{table()}{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
