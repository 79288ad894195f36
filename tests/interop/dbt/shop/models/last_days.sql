{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='day') }}
select id, amount, day from {{ ref('orders') }}
{% if is_incremental() %}
where day >= (select max(day) from {{ this }})
{% endif %}
