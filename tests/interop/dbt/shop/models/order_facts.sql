{{ config(materialized='incremental', incremental_strategy='merge', unique_key=['id', 'day'], partition_by='day') }}
select id, state, amount, changed_at, day from {{ ref('orders') }}
{% if is_incremental() %}
where changed_at > (select max(changed_at) from {{ this }})
{% endif %}
