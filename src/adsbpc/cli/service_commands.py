"""`adsbpc serve`, `adsbpc keys`, `adsbpc campaigns`; they import what they need when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

keys = typer.Typer(
    help="Keys of the service: create, list, revoke.", no_args_is_help=True, rich_markup_mode=None
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Settings (TOML); ADSBPC_... variables take precedence."
    ),
]


def serve(
    config: SettingsFile = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port to listen on; 0 picks a free one.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=64, help="Processes that share the port.")
    ] = None,
    show_config: Annotated[
        bool, typer.Option("--show-config", help="Print the settings without secrets, and exit.")
    ] = False,
) -> None:
    """Run the service: REST API, scheduler and dashboard.

    Publishers and advertisers push events, slots are released when they are over, and people look
    at a dashboard. Make a key for yourself first: adsbpc keys create --role operator --label me
    """
    from adsbpc.cli.serve import run

    run(config, {"host": host, "port": port, "workers": workers}, show_config)


def move(
    to: Annotated[str, typer.Argument(metavar="URL", help="postgresql://user@host/database")],
    config: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Move the service's SQLite files to PostgreSQL.

    Stop the servers first. The copy is verified; the old files stay under another name, so that
    nothing can be spent from them again.
    """
    from adsbpc.cli.move import run

    run(to, config, as_json)


def forget(
    user: Annotated[str, typer.Argument(metavar="USER", help="The user id, as events have it.")],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A campaign file; without one, the service."),
    ] = None,
    config: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Forget a person: events, and books of campaigns that are over.

    In the service the person's rows are removed from all event files. Books of campaigns that are
    over are erased if they name the person; in open campaigns the account stays until they are
    over, which the service then does by itself. What was released stays, and no budget is returned.
    """
    from adsbpc.cli.forget import run

    run(user, file, config, as_json)


@keys.command()
def create(
    role: Annotated[str, typer.Option(help="operator, publisher, advertiser or reader.")],
    label: Annotated[str, typer.Option(help="Whose key it is, in your own words.")],
    subject: Annotated[
        str, typer.Option(help="The publisher's or advertiser's id in the events.")
    ] = "",
    expires: Annotated[
        str,
        typer.Option(metavar="WHEN", help="After some days (90d), on a date, or never."),
    ] = "365d",
    config: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and print it, only this once."""
    from adsbpc.cli.keys import run_create

    run_create(role, subject, label, expires, config, as_json)


@keys.command("list")
def list_(config: SettingsFile = None, as_json: AsJson = False) -> None:
    """Show all keys; secrets stay hidden."""
    from adsbpc.cli.keys import run_list

    run_list(config, as_json)


@keys.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As `adsbpc keys list` shows it.")],
    config: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key, at once and on every server."""
    from adsbpc.cli.keys import run_revoke

    run_revoke(key_id, config, as_json)


campaigns = typer.Typer(
    help="Campaigns of the service: list, withdraw, pause, resume, close.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
CampaignId = Annotated[
    str, typer.Argument(metavar="ID", help="As `adsbpc campaigns list` shows it.")
]


@campaigns.command("list")
def list_campaigns(config: SettingsFile = None, as_json: AsJson = False) -> None:
    """Show all campaigns: how far they are, paused or closed."""
    from adsbpc.cli.campaigns import run_list

    run_list(config, as_json)


@campaigns.command()
def withdraw(campaign: CampaignId, config: SettingsFile = None, as_json: AsJson = False) -> None:
    """Withdraw a campaign before its first slot is released.

    Its room in the scope and its name are free again.
    """
    from adsbpc.cli.campaigns import run_withdraw

    run_withdraw(campaign, config, as_json)


@campaigns.command()
def pause(campaign: CampaignId, config: SettingsFile = None, as_json: AsJson = False) -> None:
    """Release nothing of a campaign until it is resumed.

    Events are accepted as before, and no slot is lost.
    """
    from adsbpc.cli.campaigns import run_pause

    run_pause(campaign, config, as_json)


@campaigns.command()
def resume(campaign: CampaignId, config: SettingsFile = None, as_json: AsJson = False) -> None:
    """Resume a campaign that was paused.

    Slots that ended meanwhile are released first.
    """
    from adsbpc.cli.campaigns import run_resume

    run_resume(campaign, config, as_json)


@campaigns.command("close")
def close_campaign(
    campaign: CampaignId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    config: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """End a campaign for good.

    What was released stays, and what it has not spent goes back to its scope.
    """
    from adsbpc.cli.campaigns import run_close

    run_close(campaign, yes, config, as_json)
