"""What a plan, a report and a trial look like in a notebook, cell by cell; written to a page, so
that it can be looked at without one.

.venv/bin/python examples/notebook.py [FOLDER] [PEOPLE] [DAYS]
"""

import sys
import tempfile
from pathlib import Path

from adsbpc import Campaign
from adsbpc.lab.journeys import make_campaign

arguments = sys.argv[1:]
folder = Path(arguments[0] if arguments else tempfile.mkdtemp())
people, days = (
    int(arguments[k]) if len(arguments) > k else usual for k, usual in ((1, 3_000), (2, 14))
)
shown = []


def display(result):
    """As in a notebook, where it is built in."""
    shown.append(result._repr_html_())


# %% A fortnight of made-up people, of whom some see no ads.
made = make_campaign(folder, people, days, seed=1, model="last_touch", with_control=True)
campaign = Campaign.load(made.spec)

# %% The promise, errors to come, and what would halve them.
display(campaign.plan(expected={"conversions": 300, "revenue": 15_000}))

# %% Release what is due; the table has every estimate.
display(campaign.release())

# %% Pictures and a table, without any script: they are kept when the notebook is shared. A campaign
# with a control also shows what it caused.
report = campaign.report()
display(report)

# %% The whole page, with ranges to choose and lines to point at.
display(report.explore())

# %% How far the campaign is, and whether what was promised was kept.
display(campaign.status())
findings = campaign.audit()
print(f"{len(findings.claims)} claims checked, all held: {findings.held}")

cells = "\n".join(f"<section>{each}</section>" for each in shown)
head = "<!doctype html><html lang=en><meta charset=utf-8><title>Notebook</title>"
(folder / "notebook.html").write_text(f"{head}<main><h1>Notebook</h1>{cells}</main></html>")
