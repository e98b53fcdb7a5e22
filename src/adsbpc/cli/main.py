"""The `adsbpc` program. Commands import what they need when they run, so that --help is quick."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from adsbpc import __version__
from adsbpc.cli import service_commands
from adsbpc.cli.lab_commands import lab
from adsbpc.cli.lift_commands import lift
from adsbpc.cli.service_commands import AsJson
from adsbpc.errors import AdsbpcError

app = typer.Typer(
    help="Private ad measurement that runs every day.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.add_typer(lab, name="lab")
app.add_typer(lift, name="lift")
app.add_typer(service_commands.keys, name="keys")
app.add_typer(service_commands.campaigns, name="campaigns")

CampaignFile = Annotated[Path, typer.Argument(metavar="FILE", help="The campaign file (TOML).")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"adsbpc {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Private ad measurement that runs every day."""


@app.command()
def init(
    file: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="Where to write it.", show_default=True)
    ] = Path("campaign.toml"),
    impressions: Annotated[
        str | None,
        typer.Option(
            metavar="FILES", help="Look at these and propose a file for them: CSV or Parquet."
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
            help="Which column is what, where that is not found by itself: such as "
            "impressions.user_id=visitor; repeat for more.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the campaign; that of the file if left out.")
    ] = None,
    advertiser: Annotated[
        str | None, typer.Option(help="The advertiser's id in the events.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="DATE",
            help="First day; if left out that of the conversions, or the first of this month.",
        ),
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(min=1, max=8_784, help="How many slots; if left out as many as there are."),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(help="Where days begin; this machine's if left out.")
    ] = None,
    publishers: Annotated[
        list[str] | None, typer.Option("--publisher", help="A publisher's id; repeat for more.")
    ] = None,
    publishers_are_public: Annotated[
        bool,
        typer.Option(
            "--publishers-are-public",
            help="The publishers that are found may be listed in public: without this they are "
            "written down as a draft.",
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


@app.command()
def plan(
    file: CampaignFile,
    bound: Annotated[
        float | None,
        typer.Option(
            min=1,
            max=1_000_000,
            help="Conversions of one person on one slot to show errors for; under personal-budget "
            "with one publisher.",
        ),
    ] = None,
    pilot: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA",
            help="Try personal budgets out on data that may be looked at, earlier or public: "
            "Parquet or CSV with user_id, slot, publisher_id and credit, as adsbpc attribute "
            "writes it. Says which heavy_user to write down.",
        ),
    ] = None,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE=AMOUNT",
            help="How much the whole campaign will count, such as conversions=70000; repeat for "
            "more measures. Goes before [expected] of the campaign file.",
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
            help="The smallest lift of interest, such as 10%: says how likely a trial shows it, "
            "and which rho or how many slots it takes. Goes with --rate.",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT", help="The part of the control that will convert, such as 1%."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the promise and the expected errors, before there is any data.

    Also how the budget is split, what each part of it buys, and which budget reaches a target.
    """
    from adsbpc.cli.plan import run

    run(file, bound, pilot, expect or [], target or [], lift, rate, as_json)


@app.command()
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

    Of several campaigns, those that read the same events share one scan of them, and each is
    released as it is alone. Who fails stops no other, is named at the end, and makes the exit code
    1; run it again after correcting it.
    """
    from adsbpc.cli.release import run

    run(files, slot, through, dry, as_json)


@app.command()
def close(
    file: CampaignFile,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask: it cannot be undone.")] = False,
    as_json: AsJson = False,
) -> None:
    """End a campaign early and return to its scope what it has not spent.

    For a change of plan: other publishers, another model, a longer campaign. What was released
    stays, and stays charged; nothing more is released. The file may have been edited already.
    """
    from adsbpc.cli.close import run

    run(file, yes, as_json)


@app.command()
def restore(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The campaign file (TOML).")
    ] = None,
    releases: Annotated[
        str | None,
        typer.Option(
            "--releases",
            metavar="FOLDER",
            help="Where the release files are; the campaign's own in adsbpc-releases if left out.",
        ),
    ] = None,
    config: service_commands.SettingsFile = None,
    campaign: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="In place of FILE: a campaign of the service; stop it first."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Go on from published releases that a restored ledger lacks.

    After a backup of the ledger was put back, everything is refused that would draw again what
    people have seen. This hands the release files back: nothing is drawn, and what they cost is
    charged as it was.
    """
    from adsbpc.cli.restore import run

    run(file, releases, config, campaign, as_json)


@app.command()
def status(
    file: CampaignFile,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Check that no entry and no file was changed, and run the audit."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what has been released, and how much budget is spent and left."""
    from adsbpc.cli.status import run

    run(file, verify, as_json)


@app.command()
def audit(file: CampaignFile, as_json: AsJson = False) -> None:
    """Check what was promised against ledger, files and books.

    One line for each claim, recomputed in exact integers by code that shares nothing with the code
    that releases: the chain of the ledger, charges and noise against the promise, what every person
    cost under personal budgets, and that the books add up to the secret totals. Reads everything,
    changes nothing, and ends with exit code 1 if a claim does not hold.
    """
    from adsbpc.cli.audit import run

    run(file, as_json)


@app.command()
def statement(
    file: CampaignFile,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="html, json or md. The ending of --out tells too."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write it; printed if left out."),
    ] = None,
    audit: Annotated[
        bool, typer.Option(help="Run the audit and say which of its claims hold.")
    ] = True,
    sign: Annotated[
        Path | None,
        typer.Option(
            "--sign",
            metavar="KEY",
            help="Sign what is written with this Ed25519 key (PEM), into FILE.sig.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write what an auditor reads: the promise, its hazards, every charge, the audit's results.

    In the vocabulary of NIST SP 800-226, with an entry for a registry of deployments. It holds no
    figure before noise and may be published.
    """
    from adsbpc.cli.statement import run

    run(file, format_, out, audit, sign, as_json)


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(metavar="STATEMENT", help="A statement that was signed.")],
    key: Annotated[
        Path, typer.Option("--key", metavar="PUBLIC", help="The signer's public key (PEM).")
    ],
    as_json: AsJson = False,
) -> None:
    """Check the signature of a statement.

    The signature is read from the file beside it that ends in .sig. Ends with exit code 1 if it is
    not that of the file and the key.
    """
    from adsbpc.cli.statement import verify as check

    check(file, key, as_json)


@app.command()
def report(
    file: CampaignFile,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="html, csv, parquet, json; mmm for weeks. The ending of --out tells too.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Where to write it; with neither, a table is printed."
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals, 0.5 to 0.9999.")] = 0.95,
    adjusted: Annotated[
        bool,
        typer.Option("--adjusted", help="Totals that never fall, counts that are never negative."),
    ] = False,
    measure: Annotated[
        str | None,
        typer.Option(help="What the page or the table is about; the first measure if left out."),
    ] = None,
    band: Annotated[
        bool,
        typer.Option("--band", help="Also a band of running totals, for all slots at once."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as one JSON object.")
    ] = False,
) -> None:
    """Show or write released values with intervals."""
    from adsbpc.cli.report import run

    run(file, format_, out, level, adjusted, measure, band, as_json)


@app.command()
def doctor(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The campaign file (TOML).")
    ] = None,
    config: service_commands.SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Check this machine: engine, Java, disk, database, clock, permissions, extras.

    For a campaign file, for the service's settings, or for the machine alone. Changes nothing; one
    line for each thing, with the next step where something is missing, and exit code 1 then.
    """
    from adsbpc.cli.doctor import run

    run(file, config, as_json)


@app.command()
def demo(
    directory: Annotated[
        Path, typer.Option("--directory", metavar="DIR", help="Where to write everything.")
    ] = Path("demo"),
    users: Annotated[int, typer.Option(min=10, help="How many people to make up.")] = 40_000,
    slots: Annotated[int, typer.Option(min=1, max=366, help="How many days.")] = 31,
    model: Annotated[
        str, typer.Option(help="Attribution: last_touch, uniform, shapley, markov, ...")
    ] = "uniform",
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same people.")] = 1,
    lift: Annotated[
        bool,
        typer.Option("--lift", help="With a control that sees nothing: what did the ads cause?"),
    ] = False,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Play it over HTTP in fast time and leave the service open."),
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="With --serve.")] = 8_080,
    day_seconds: Annotated[
        float, typer.Option(min=0.5, max=3_600, help="With --serve: how long a day takes.")
    ] = 2.0,
    as_json: AsJson = False,
) -> None:
    """Make up a month, release it, write a report.

    Starting again in the same folder replaces the demo that is there.
    """
    if serve and lift:
        raise typer.BadParameter(
            "goes without --serve: the service takes no trials", param_hint="--lift"
        )
    if serve:
        from adsbpc.cli.demo_service import run as run_service

        run_service(directory, users, slots, model, seed, port, day_seconds)
        return
    from adsbpc.cli.demo import run

    run(directory, users, slots, model, seed, lift, as_json)


@app.command()
def budget(
    rho: Annotated[float | None, typer.Option(help="zCDP budget.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Convert from this epsilon to rho.")] = None,
    delta: Annotated[float, typer.Option(help="Chance of a larger loss.")] = 1e-6,
    gaussian: Annotated[
        bool, typer.Option("--gaussian", help="Tighter, for continuous Gaussian noise only.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Convert between rho (zCDP) and (epsilon, delta)."""
    from adsbpc.cli.budget import run

    run(rho, epsilon, delta, gaussian, as_json)


@app.command()
def fit(
    file: CampaignFile,
    model: Annotated[
        str | None,
        typer.Option(help="Another model from the same released counts, at no further cost."),
    ] = None,
    order: Annotated[
        int | None, typer.Option(min=1, max=3, help="The order of that model.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the parameters, for other campaigns."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the parameters of a fitted attribution model.

    They are public: a release gave them out. Models that follow from the same counts stand side by
    side.
    """
    from adsbpc.cli.fit import run

    run(file, model, order, out, as_json)


@app.command()
def attribute(
    file: CampaignFile,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Parquet file for the credits.")
    ],
    quarantine: Annotated[
        Path | None,
        typer.Option("--quarantine", metavar="FILE", help="Parquet file for the bad rows."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write credits BEFORE privacy, for debugging.

    The file holds personal data: one row per user, conversion and publisher, without any noise.
    Keep it where raw events may be kept, and publish nothing from it.
    """
    from adsbpc.cli.attribute import run

    run(file, out, quarantine, as_json)


app.command("serve")(service_commands.serve)
app.command("move")(service_commands.move)
app.command("forget")(service_commands.forget)


def _start_quickly() -> None:
    """Much of a short command would go into collecting what libraries leave as they load, into
    collecting it again at the end, and into a search for plugins of pydantic."""
    gc.set_threshold(20_000)
    atexit.register(_leave_quickly)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")


def _leave_quickly() -> None:
    # DuckDB complains on stderr about whatever is not collected.
    if "duckdb" not in sys.modules:
        gc.freeze()


@contextmanager
def _prepared(word: str) -> Iterator[None]:
    """Nothing but what the first word names is made ready, if it names something: typer prepares
    every command that it knows, with all its options, before it runs one."""
    known = app.registered_commands, app.registered_groups
    commands = [
        each
        for each in app.registered_commands
        if each.callback and word == (each.name or each.callback.__name__)
    ]
    groups = [each for each in app.registered_groups if each.name == word]
    if commands or groups:
        app.registered_commands, app.registered_groups = commands, groups
    try:
        yield
    finally:
        app.registered_commands, app.registered_groups = known


def main() -> None:
    """Run the program; errors go to stderr and set the exit code: 1 refused, 2 bad usage."""
    _start_quickly()
    try:
        with _prepared(sys.argv[1] if len(sys.argv) > 1 else ""):
            app()
    except AdsbpcError as error:
        typer.echo(f"adsbpc: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Whoever reads the output has enough of it; what was committed stays committed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        typer.echo(f"adsbpc: {error}", err=True)
        os._exit(1)


if __name__ == "__main__":
    main()
