{{ config(materialized='table', clustered_by='day', buckets=2, tblproperties={'owner.team': 'sales'}) }}
select day, count(*) as orders, sum(amount) as amount from {{ ref('order_facts') }} group by day
