"""Conversions, revenue and spend of a campaign, cell by cell as in a notebook.

.venv/bin/python examples/costs_and_returns.py [FOLDER] [PEOPLE] [DAYS]
"""

import sys
import tempfile
from pathlib import Path

from rich import print
from rich.table import Table

from adsbpc import Campaign
from adsbpc.lab.journeys import make_campaign

# %% Made-up people with countries, devices and baskets, and what each publisher was paid.
arguments = sys.argv[1:]
folder = Path(arguments[0] if arguments else tempfile.mkdtemp())
people, days = (
    int(arguments[k]) if len(arguments) > k else usual for k, usual in ((1, 4_000), (2, 14))
)
made = make_campaign(folder, users=people, slots=days, seed=1, model="last_touch")
campaign = Campaign.load(made.spec)

# %% Before any data: how large will errors be beside what is counted, and what would halve them?
print("## plan")
expected = {"conversions": 0.19 * people * days / 31, "revenue": 9.4 * people * days / 31}
plan = campaign.plan(expected=expected, targets=["revenue/publisher@10%=5%"])
for row in plan.accuracy:
    if row.period == "campaign" and row.part in (1.0, 0.1):
        what = row.measure if row.view == "total" else f"{row.measure}, {row.view} with 10%"
        print(f"{what}: {row.amount:,.0f} expected, within {row.within:.1%}")
print(f"Revenue within 5% there needs rho = {plan.proposal.rho:g}, shares {plan.proposal.shares}")

# %% Release every day that is over, as a job does every morning.
print("## figures")
campaign.release()
report = campaign.report()
print(report.table())

# %% Spend is public: what a conversion costs, and what comes back.
print("## ratios")
print(report.ratio_table())

# %% Any range of days, and what changed since the days before. Neither costs anything more.
print("## week")
week, before = (days - 6, days), (days - 13, days - 7)
table = Table("publisher", "last 7 days", "interval", "change", "interval of the change")
for change in report.changes(week, before):
    if len(change.after.keys) <= 1:
        cell = change.after
        table.add_row(
            cell.publisher,
            f"{cell.estimate:,.0f}",
            f"{cell.low:,.0f} to {cell.high:,.0f}",
            f"{change.difference:+,.0f}",
            f"{change.low:+,.0f} to {change.high:+,.0f}",
        )
print(table)

# %% The second measure is by device: every level adds up to the one above it.
print("## devices")
revenue = campaign.report(measure="revenue")
cells = {cell.keys: cell for cell in revenue.between(1, days)}
for device in ("phone", "desktop", "other"):
    cell = cells["search", device]
    print(f"search, {device}: {cell.estimate:,.0f} EUR ({cell.low:,.0f} to {cell.high:,.0f})")
print(f"search: {cells['search',].estimate:,.0f} EUR of {cells[()].estimate:,.0f}")

# %% The long form for notebooks, weeks for marketing mix models, and the page for everybody.
print("## files")
frame = report.to_polars()
print(f"{frame.height:,} rows with the columns {', '.join(frame.columns)}")
(folder / "weeks.csv").write_text(report.to_mmm())
report.write(folder / "report.html", "html")
findings = campaign.audit()
print(f"{len(findings.claims)} claims checked, all held: {findings.held}")
