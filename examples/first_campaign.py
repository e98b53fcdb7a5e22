"""A campaign from Python, cell by cell as in a notebook: make up events, release, read, audit.

.venv/bin/python examples/first_campaign.py [FOLDER] [PEOPLE]
"""

import sys
import tempfile
from pathlib import Path

from rich import print

from adsbpc import Campaign
from adsbpc.lab.journeys import make_campaign

# %% A month of made-up people, and the campaign file that measures them.
folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
people = int(sys.argv[2]) if len(sys.argv) > 2 else 5_000
made = make_campaign(folder, users=people, slots=7, seed=1, model="last_touch")
print(f"{made.impressions:,} impressions and {made.conversions:,} conversions in {folder}")

# %% What will be promised, and how accurate it will be, before any event is read.
campaign = Campaign.load(made.spec)
plan = campaign.plan()
print(plan.caption())

# %% Release every slot that has ended. Running this again draws and charges nothing.
releases = campaign.release()
print(releases.caption())

# %% The latest totals with their intervals; `report.to_pandas()` has every slot.
report = campaign.report()
print(report.table())

# %% What was spent, and whether everything that was promised was kept.
status = campaign.status()
print(
    f"{status.released} of {status.slots} slots, {float(status.campaign_budget.left):g} of rho left"
)
findings = campaign.audit()
print(f"{len(findings.claims)} claims checked, all held: {findings.held}")
