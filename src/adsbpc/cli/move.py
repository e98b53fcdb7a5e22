"""`adsbpc move`: the ledger and the service's tables, from SQLite to PostgreSQL."""

from __future__ import annotations

import json
from pathlib import Path

from adsbpc.cli.console import notes
from adsbpc.errors import ServiceError
from adsbpc.ledger.copying import copy_ledger, copy_tables
from adsbpc.ledger.database import Database
from adsbpc.ledger.seal import seal_of
from adsbpc.service.data_folder import enter_alone
from adsbpc.service.settings import load_settings
from adsbpc.service.store import SERVICE, metadata, moved_name


def run(to: str, config: Path | None, as_json: bool) -> None:
    settings = load_settings(config)
    old_ledger = Database(settings.ledger.location, settings.data)
    old_store = Database(settings.service.database, settings.data, SERVICE)
    for database, must_exist in ((old_store, True), (old_ledger, False)):
        if database.file is None or (must_exist and not database.file.exists()):
            raise ServiceError(
                f"{database.where}: is no SQLite file that could be moved. Check the settings"
            )
        _check_free(database.file)
    new_ledger = Database(to, settings.data)
    with enter_alone(settings.data), notes().status(f"Copying to {new_ledger.where}"):
        entries = copy_ledger(settings.ledger.location, to, settings.data)
        rows = copy_tables(old_store, Database(to, settings.data, SERVICE), metadata)
        # What waits in a log beside a file is carried into it when the last connection closes.
        old_store.close()
        # An old ledger that could be charged again would spend the same budget twice.
        kept = [_retire(database.file) for database in (old_ledger, old_store) if database.file]
    if as_json:
        print(json.dumps({"entries": entries, "rows": rows, "kept": kept}))
        return
    print(f"{entries:,} entries of the ledger and {rows:,} rows of the service were copied to")
    print(f"{new_ledger.where}, and the ledger verifies there. The old files are kept as")
    print(f"{' and '.join(kept)}. Set [ledger] location and [service] database to the new place.")


def _check_free(file: Path) -> None:
    """Before anything is copied: afterwards there would be two ledgers."""
    if moved_name(file).exists():
        raise ServiceError(f"{moved_name(file)}: is there already. Put it elsewhere first")


def _retire(file: Path) -> str:
    seal = seal_of(file)
    if seal.exists():
        seal.rename(seal_of(moved_name(file)))
    return str(file.rename(moved_name(file)))
