select * from {{ ref('order_facts') }} where amount <= 0
