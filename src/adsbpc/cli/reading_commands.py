"""Commands for those who read: reports, checks, figures. Imports wait for the command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adsbpc.cli.campaign_commands import CampaignFile
from adsbpc.cli.service_commands import AsJson, SettingsFile


def audit(file: CampaignFile, as_json: AsJson = False) -> None:
    """Check what was promised against ledger, files and books.

    One line for each claim, recomputed in exact integers by code that shares nothing with the code
    that releases: the chain of the ledger, charges and noise against the promise, what every person
    cost under personal budgets, and that the books add up to the secret totals. Reads everything,
    changes nothing, and ends with exit code 1 if a claim does not hold.
    """
    from adsbpc.cli.audit import run

    run(file, as_json)


def statement(
    file: CampaignFile,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="html, json or md; by default as --out ends."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write it; by default it is printed."),
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
    """Write what an auditor reads: promise, charges, the audit.

    It also names the hazards that the promise does not cover, in the vocabulary of NIST SP 800-226,
    and has an entry for a registry of deployments. It contains no figures without noise, and may be
    published.
    """
    from adsbpc.cli.statement import run

    run(file, format_, out, audit, sign, as_json)


def verify(
    file: Annotated[Path, typer.Argument(metavar="STATEMENT", help="A statement that was signed.")],
    key: Annotated[
        Path, typer.Option("--key", metavar="PUBLIC", help="The signer's public key (PEM).")
    ],
    as_json: AsJson = False,
) -> None:
    """Check the signature of a statement.

    The signature is read from the file beside it that ends in .sig. The exit code is 1 if it was
    not made of this file with this key.
    """
    from adsbpc.cli.statement import verify as check

    check(file, key, as_json)


def report(
    file: CampaignFile,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="html, csv, parquet or json; mmm for weeks. By default as --out ends.",
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
        typer.Option(help="The measure that the page or the table shows; by default the first."),
    ] = None,
    band: Annotated[
        bool,
        typer.Option(
            "--band", help="Add bands to running totals, which hold for all slots at once."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as one JSON object.")
    ] = False,
) -> None:
    """Show or write released values with intervals."""
    from adsbpc.cli.report import run

    run(file, format_, out, level, adjusted, measure, band, as_json)


def doctor(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The campaign file (TOML).")
    ] = None,
    config: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Check this machine: engine, Java, disk, database, extras.

    Its clock and permissions, too: for a campaign file, for the service's settings, or for the
    machine alone. Prints one line for each check, with the next step where something is missing;
    the exit code is then 1. Changes nothing.
    """
    from adsbpc.cli.doctor import run

    run(file, config, as_json)


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
        typer.Option(
            "--serve", help="Play the month over HTTP, sped up, and leave the service running."
        ),
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
            "does not go with --serve: that demo has no trial", param_hint="--lift"
        )
    if serve:
        from adsbpc.cli.demo_service import run as run_service

        run_service(directory, users, slots, model, seed, port, day_seconds)
        return
    from adsbpc.cli.demo import run

    run(directory, users, slots, model, seed, lift, as_json)


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

    They are public: a release has published them. Models that follow from the same counts are shown
    side by side.
    """
    from adsbpc.cli.fit import run

    run(file, model, order, out, as_json)


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
