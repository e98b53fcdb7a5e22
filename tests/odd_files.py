"""Somebody's exports: CSV files whose columns have names of their own, made up."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from random import Random

_SITES = {"Zeitung": 0.4, "Radio": 0.2, "Suche": 0.3, "Forum": 0.1}
_FIRST = datetime(2026, 3, 1)


def write_odd_files(folder: Path, people: int = 1_500, days: int = 14) -> None:
    """Ads that were seen and orders that were placed: semicolons, German dates, decimal commas."""
    draw = Random(7)
    ads: list[tuple[str, ...]] = []
    orders: list[tuple[str, ...]] = []
    for _ in range(people):
        customer = f"K{draw.randrange(10**9):09d}"
        for _ in range(draw.randrange(1, 5)):
            seen = _FIRST + timedelta(seconds=draw.randrange(days * 86_400))
            site = draw.choices(list(_SITES), list(_SITES.values()))[0]
            ads.append((f"{seen:%d.%m.%Y %H:%M:%S}", site, customer, "Schuh & Co"))
            bought = seen + timedelta(minutes=draw.randrange(5, 1_200))
            if draw.random() < 0.3 and bought < _FIRST + timedelta(days=days):
                worth = f"{draw.randrange(900, 15_000) / 100:.2f}".replace(".", ",")
                order = f"B-{len(orders):05d}"
                orders.append((order, customer, f"{bought:%d.%m.%Y %H:%M:%S}", "Schuh & Co", worth))
    _write(folder / "ads_seen.csv", ("gesehen am", "Seite", "Kunde", "Marke"), ads)
    _write(folder / "orders.csv", ("Beleg", "Kundennr", "gekauft", "Shop", "Betrag"), orders)


def _write(file: Path, names: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    lines = [names, *rows]
    file.write_text("".join(";".join(line) + "\n" for line in lines), encoding="utf-8")
