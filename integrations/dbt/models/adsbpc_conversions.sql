-- Conversions: who did what the campaign is about, when it happened and when that was known.
select
  event_id,
  user_id,
  '{{ var("adsbpc_advertiser") }}' as advertiser_id,
  happened_at as "timestamp",
  arrived_at,
  value
from ({{ adsbpc.adsbpc_rows() }}) as events
where event_name in ({{ adsbpc.adsbpc_texts(var("adsbpc_conversion_events")) }})
