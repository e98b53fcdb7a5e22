"""Everything that the campaign has released, as a table; running it releases what is due."""

from adsbpc_integrations.dbt import released


def model(dbt, session):
    dbt.config(materialized="table")
    settings = dbt.config.get("meta")
    return released(
        session,
        dbt.ref("adsbpc_impressions"),
        dbt.ref("adsbpc_conversions"),
        settings["campaign"],
        [settings["program"]],
    )
