{#- A list of names as SQL texts. -#}
{% macro adsbpc_texts(names) -%}
  {%- for name in names -%}'{{ name | replace("'", "''") }}'{{ ", " if not loop.last }}{%- endfor -%}
{%- endmacro %}

{#- The rows of a source as adsbpc wants them: one macro for each source that is known. A project with
    another one defines adsbpc_rows_NAME and sets adsbpc_source. -#}
{% macro adsbpc_rows() -%}
  {%- set maker = "adsbpc_rows_" ~ var("adsbpc_source") -%}
  {%- set known = context.get(maker) or context.get("adsbpc", {}).get(maker) -%}
  {%- if not known -%}
    {{ exceptions.raise_compiler_error(
      "adsbpc_source = " ~ var("adsbpc_source") ~ ": no macro " ~ maker ~ ". Set snowplow or ga4, or define it") }}
  {%- endif -%}
  {{ known() }}
{%- endmacro %}

{#- Snowplow's atomic events. The person is the domain user id; whoever logs in should have one id on all
    devices, in another column. -#}
{% macro adsbpc_rows_snowplow() %}
select
  event_id,
  domain_userid as user_id,
  mkt_source as publisher_id,
  derived_tstamp as happened_at,
  collector_tstamp as arrived_at,
  event_name,
  cast(tr_total as double precision) as value
from {{ var("adsbpc_snowplow_events") }}
{% endmacro %}

{#- GA4's export to BigQuery, flattened: one row an event, moments in microseconds since 1970. -#}
{% macro adsbpc_rows_ga4() %}
select
  cast(null as varchar) as event_id,
  user_pseudo_id as user_id,
  traffic_source_source as publisher_id,
  {{ adsbpc_moment("event_timestamp") }} as happened_at,
  {{ adsbpc_moment("event_timestamp") }} as arrived_at,
  event_name,
  cast(event_value_in_usd as double precision) as value
from {{ var("adsbpc_ga4_events") }}
{% endmacro %}

{#- Microseconds since 1970 as a moment with its zone. -#}
{% macro adsbpc_moment(column) -%}
  {{ return(adapter.dispatch("adsbpc_moment", "adsbpc")(column)) }}
{%- endmacro %}

{% macro default__adsbpc_moment(column) -%}
  to_timestamp({{ column }} / 1000000.0)
{%- endmacro %}

{% macro bigquery__adsbpc_moment(column) -%}
  timestamp_micros({{ column }})
{%- endmacro %}
