"""Commands that run a campaign: from its file to its last slot. Imports wait for the command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adsbpc.cli.service_commands import AsJson, SettingsFile

CampaignFile = Annotated[Path, typer.Argument(metavar="FILE", help="The campaign file (TOML).")]


def init(
    file: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="Where to write it.", show_default=True)
    ] = Path("campaign.toml"),
    impressions: Annotated[
        str | None,
        typer.Option(
            metavar="FILES", help="Look at these, CSV or Parquet, and propose a file for them."
        ),
    ] = None,
    conversions: Annotated[
        str | None, typer.Option(metavar="FILES", help="The same for conversions.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="SOURCE.FIELD=NAME",
            help="Which column holds a field, where the proposal is wrong or missing, such as "
            "impressions.user_id=visitor; repeat for more.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the campaign; by default that of the file.")
    ] = None,
    advertiser: Annotated[
        str | None, typer.Option(help="The advertiser's id in the events.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="DATE",
            help="First day; by default that of the conversions, or the first of this month.",
        ),
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(
            min=1, max=8_784, help="How many slots; by default as many as the files cover."
        ),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(help="Time zone of the days; by default this machine's.")
    ] = None,
    publishers: Annotated[
        list[str] | None, typer.Option("--publisher", help="A publisher's id; repeat for more.")
    ] = None,
    publishers_are_public: Annotated[
        bool,
        typer.Option(
            "--publishers-are-public",
            help="The publishers that are found may be listed in public; without this they are "
            "written to a draft.",
        ),
    ] = False,
    rho: Annotated[float, typer.Option(help="The budget of the campaign in zCDP.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Write a commented campaign file to start from.

    With --impressions and --conversions it looks at the columns of your files, whatever they are
    called, proposes what each means, days and publishers, and says how accurate figures will be. In
    a terminal it asks for what is not given. Nothing is released and nothing is charged.
    """
    from adsbpc.cli.init import Wishes, run

    run(
        Wishes(
            file, name, advertiser, start, slots, tuple(publishers or ()), impressions,
            conversions, tuple(columns or ()), timezone, rho, publishers_are_public,
        ),
        as_json,
    )  # fmt: skip


def plan(
    file: CampaignFile,
    bound: Annotated[
        float | None,
        typer.Option(
            min=1,
            max=1_000_000,
            help="Show errors for so many conversions of one person in one slot; under "
            "personal-budget with one publisher.",
        ),
    ] = None,
    pilot: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA",
            help="Try out personal budgets on data that you may look at, earlier or public: "
            "Parquet or CSV with user_id, slot, publisher_id and credit, as adsbpc attribute "
            "writes it. Suggests a heavy_user.",
        ),
    ] = None,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE=AMOUNT",
            help="How much the whole campaign will count, such as conversions=70000; repeat for "
            "more measures. Takes precedence over [expected] in the campaign file.",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE/VIEW=PERCENT",
            help="How close a total should be in the end, such as conversions/publisher=10%, or "
            "revenue/publisher@2%=9% for a publisher with 2% of the total. Says which rho and "
            "shares reach that; repeat for more.",
        ),
    ] = None,
    lift: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="The smallest lift of interest, such as 10%: says how likely a trial is to show "
            "it, and which rho or how many slots that takes. Goes with --rate.",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT", help="The share of the control that will convert, such as 1%."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the promise and the expected errors, before any data.

    Also how the budget is split, what each part of it buys, and which budget reaches a target.
    """
    from adsbpc.cli.plan import run

    run(file, bound, pilot, expect or [], target or [], lift, rate, as_json)


def release(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="The campaign file (TOML); or several, or folders of them, which are released "
            "together.",
        ),
    ],
    slot: Annotated[
        int | None,
        typer.Option(help="Only this slot: the next one, or one that was released before."),
    ] = None,
    through: Annotated[
        str | None,
        typer.Option(
            metavar="DATE",
            help="All slots up to the one of this date, or of a date and time. It must be over.",
        ),
    ] = None,
    dry: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Read the next slot and count its rows; nothing is charged."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per slot, each on its own line.")
    ] = False,
) -> None:
    """Release what is due, in order, and charge the ledger. Safe to repeat and to kill.

    A slot is due when it is over: run this after the day's files have landed, because a released
    slot is never drawn again. One that was released before is returned as it was.

    Campaigns that read the same events share one scan of them, and each is released as it would be
    alone. One that fails does not stop the others; it is named at the end, and the exit code is 1.
    Correct it and run the command again.
    """
    from adsbpc.cli.release import run

    run(files, slot, through, dry, as_json)


def close(
    file: CampaignFile,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask: it cannot be undone.")] = False,
    as_json: AsJson = False,
) -> None:
    """End a campaign early; its scope gets back what was not spent.

    For a change of plan: other publishers, another model, a longer campaign. What was released
    stays, and stays charged; nothing more is released. The file may already have been edited.
    """
    from adsbpc.cli.close import run

    run(file, yes, as_json)


def restore(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The campaign file (TOML).")
    ] = None,
    releases: Annotated[
        str | None,
        typer.Option(
            "--releases",
            metavar="FOLDER",
            help="Where the release files are; by default the campaign's own in adsbpc-releases.",
        ),
    ] = None,
    config: SettingsFile = None,
    campaign: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Instead of FILE, a campaign of the service, which must be stopped."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Go on from published releases that a restored ledger lacks.

    After the ledger was restored from a backup, nothing is released that would draw again what
    people have already seen. This hands the release files back to the ledger: nothing is drawn, and
    they are charged as they were.
    """
    from adsbpc.cli.restore import run

    run(file, releases, config, campaign, as_json)


def status(
    file: CampaignFile,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Check that no entry or file was changed, and run the audit."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was released, and the budget spent and left."""
    from adsbpc.cli.status import run

    run(file, verify, as_json)
