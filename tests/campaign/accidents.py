"""A campaign whose whole folder is put back from a backup after people have seen more of it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import sqlalchemy

from adsbpc import Campaign
from adsbpc.ledger import Ledger
from tests.campaign.book_files import committed, rows_of
from tests.campaign.files import edit, published

_COPIES = count(1)


def copy_of(database: str) -> str:
    """The location of a copy of a PostgreSQL database, as a backup that was put back."""
    base, options = database.split("?", 1)
    server, name = base.rsplit("/", 1)
    copy = f"{name}_copy_{next(_COPIES)}"
    url = f"{server}/postgres?{options}".replace("postgresql://", "postgresql+psycopg://")
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {copy} TEMPLATE {name}")
    engine.dispose()
    return f"{server}/{copy}?{options}"


@dataclass
class Accident:
    """`backup` the campaign's folder, let people see more of it, `strike`: everything in the folder
    is as it was, and `seen` has the release files that people hold."""

    file: Path
    location: str = "ledger.sqlite"

    @property
    def home(self) -> Path:
        return self.file.parent

    @property
    def kept(self) -> Path:
        return self.home.with_name("kept")

    @property
    def seen(self) -> Path:
        return self.home.with_name("seen")

    @property
    def undisturbed(self) -> Path:
        """The folder as it was before the accident."""
        return self.home.with_name("undisturbed")

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.location, self.home)

    def backup(self) -> None:
        shutil.copytree(self.home, self.kept)
        if "://" in self.location:
            self.location_kept = copy_of(self.location)

    def strike(self, releases_too: bool = True) -> None:
        """`releases_too` unless what was published is on another disk."""
        self.before = self.standing()
        shutil.copytree(self.home, self.undisturbed)
        releases = self.home / "adsbpc-releases"
        shutil.copytree(releases / "acme" / "spring", self.seen)
        shutil.rmtree(self.home)
        shutil.copytree(self.kept, self.home)
        if not releases_too:
            shutil.rmtree(releases)
            shutil.copytree(self.undisturbed / "adsbpc-releases", releases)
        if "://" in self.location:
            edit(self.file, self.location, self.location_kept)
            self.location = self.location_kept

    def standing(self) -> dict[str, Any]:
        """Everything that goes on: releases, spending, state and books."""
        steps = self.ledger.steps("acme", "spring")
        books = []
        if steps and "books" in steps[-1]:
            folders = committed(self.home, self.location)
            books = [rows_of(folder, FILES[:-1]) for folder in folders] + [rows_of(folders[-1])]
        return {
            "releases": self.ledger.releases("acme", "spring"),
            "published": published(self.home),
            "spent": self.ledger.spent("acme"),
            "steps": [{key: step[key] for key in step if key != "books"} for step in steps],
            "books": books,
        }

    def campaign(self) -> Campaign:
        return Campaign.load(self.file)


FILES = ("names.parquet", "cells.parquet", "cut.parquet", "rest.parquet", "users.parquet")
