-- Impressions: who saw or clicked what, where and when. Rows that lack something are left in: adsbpc
-- sets them aside with a reason, and counts them.
select
  event_id,
  user_id,
  publisher_id,
  '{{ var("adsbpc_advertiser") }}' as advertiser_id,
  happened_at as "timestamp",
  case when event_name in ({{ adsbpc.adsbpc_texts(var("adsbpc_click_events")) }}) then 'click' else 'view' end as kind
from ({{ adsbpc.adsbpc_rows() }}) as events
where event_name in ({{ adsbpc.adsbpc_texts(var("adsbpc_impression_events")) }})
