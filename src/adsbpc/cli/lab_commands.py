"""The `adsbpc lab` commands; like all others they import what they need when they run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

lab = typer.Typer(
    help="Compare mechanisms; run the paper's evaluation again.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value for machines.")]
Trials = Annotated[int, typer.Option(min=1, help="How often each mechanism draws its noise.")]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same data and noise.")]
Jobs = Annotated[int, typer.Option(min=1, help="How many processes to use.")]


@lab.command()
def datasets(as_json: AsJson = False) -> None:
    """List the datasets and the mechanisms."""
    from adsbpc.cli.lab import run_datasets

    run_datasets(as_json)


@lab.command()
def compare(
    datasets: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="See `adsbpc lab datasets`; by default facebook."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Your own data: Parquet or CSV with user_id, slot, publisher_id, weight.",
        ),
    ] = None,
    largest_user: Annotated[
        int | None,
        typer.Option(min=1, help="Public limit GS on a user's conversions in your own data."),
    ] = None,
    mechanisms: Annotated[
        str, typer.Option(metavar="X,Y", help="Mechanisms; by default all but PipelineDP.")
    ] = "",
    rho: Annotated[str, typer.Option(metavar="RHO,RHO", help="Budgets.")] = "1",
    slots: Annotated[
        int | None, typer.Option(min=1, max=8_784, help="Days; 31, or those of your own data.")
    ] = None,
    queries: Annotated[
        str,
        typer.Option(help="prefix, end (prefix, the last above all), sliding (a week) or slot."),
    ] = "prefix",
    adjacency: Annotated[str, typer.Option(help="add-remove or substitute.")] = "add-remove",
    users: Annotated[
        int | None, typer.Option(min=1, help="Fewer people than in the paper, where possible.")
    ] = None,
    trials: Trials = 10,
    seed: Seed = 1,
    allowance: Annotated[
        float | None,
        typer.Option(
            min=0.1, help="A public one for personal budgets, in place of one that is found."
        ),
    ] = None,
    jobs: Jobs = 1,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the result: FILE.svg and FILE.png."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rank mechanisms on the same data, budget and adjacency.

    An experiment on data that you may look at: nothing here is charged to a ledger, and nothing
    that it prints about real people is private.
    """
    from adsbpc.cli.lab import Comparison, run_compare

    asked = Comparison(
        datasets,
        data,
        largest_user,
        mechanisms,
        rho,
        slots,
        queries,
        adjacency,
        users,
        trials,
        seed,
        allowance,
    )
    run_compare(asked, jobs, plot, as_json)


@lab.command()
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Experiments; by default all.")
    ] = None,
    trials: Trials = 10,
    seed: Seed = 1,
    jobs: Jobs = 2,
    users: Annotated[
        int, typer.Option(min=100, help="People in zipf, normal and uniform; the paper has 10^6.")
    ] = 100_000,
    criteo_users: Annotated[
        int | None, typer.Option(min=100, help="People in the Criteo surrogate; by default all.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results and figures go.")] = Path(
        "lab-results"
    ),
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page with all results here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the paper's experiments again, beside what it printed.

    Finished runs are kept under DIR/cache: an interrupted reproduction goes on where it stopped.
    """
    from adsbpc.cli.lab import run_reproduce
    from adsbpc.lab.reproduction.experiments import Size

    run_reproduce(names or [], Size(trials, seed, users, criteo_users), jobs, out, page, as_json)


@lab.command()
def coverage(
    trials: Annotated[int, typer.Option(min=1, help="How many campaigns.")] = 200,
    people: Annotated[int, typer.Option(min=100, help="In each of them.")] = 4_000,
    slots: Annotated[int, typer.Option(min=2, max=366, help="Days of each.")] = 31,
    rho: Annotated[str, typer.Option(metavar="RHO", help="Budget of each.")] = "1",
    mechanism: Annotated[str, typer.Option(help="personal-budget or adsbpc.")] = "personal-budget",
    datasets: Annotated[
        str,
        typer.Option(
            metavar="A,B", help="Take conversions of these instead, drawn anew each time."
        ),
    ] = "",
    seed: Seed = 1,
    jobs: Jobs = 1,
    as_json: AsJson = False,
) -> None:
    """Repeat a campaign: how many of its intervals contain the truth?

    Of 95% intervals, for conversions, revenue, impressions and reach of made-up people, some of
    whom do ten times as much as most, with ratios of them; or for conversions of data sets by
    publisher. After the first slot, half of them and the last, and how many bands hold after all
    slots at once. Nothing is written.
    """
    from adsbpc.cli.lab import run_coverage
    from adsbpc.lab.repeated import RepeatedCampaign

    asked = RepeatedCampaign(people, slots, rho, mechanism)
    names = [name.strip() for name in datasets.split(",") if name.strip()]
    campaigns = [replace(asked, dataset=name) for name in names] or [asked]
    run_coverage(campaigns, trials, seed, jobs, as_json)


@lab.command()
def lift(
    trials: Annotated[int, typer.Option(min=1, help="How many of each kind.")] = 1_000,
    people: Annotated[int, typer.Option(min=1_000, help="In each of two arms.")] = 32_000,
    slots: Annotated[int, typer.Option(min=2, max=366, help="Days of each.")] = 31,
    rho: Annotated[str, typer.Option(metavar="RHO,RHO", help="Budgets.")] = "0.05,1",
    scenarios: Annotated[
        str, typer.Option(metavar="A,B", help="Kinds of trials, by name; by default all.")
    ] = "",
    seed: Seed = 1,
    jobs: Jobs = 1,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the price: FILE.svg and FILE.png.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Repeat trials with a known effect: what does privacy cost?

    Counts how often the interval of the last day and the band of all days contain the truth, and
    how often somebody who looks every day would see an effect where there is none. Nothing is
    written.
    """
    from adsbpc.cli.lab_lift import run

    run(trials, people, slots, rho, scenarios, seed, jobs, plot, as_json)
