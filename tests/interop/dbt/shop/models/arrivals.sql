{{ config(materialized='incremental', incremental_strategy='append', on_schema_change='append_new_columns') }}
select id, changed_at {% if var('with_state', false) %}, state {% endif %} from {{ ref('orders') }}
{% if is_incremental() %}
where changed_at > (select max(changed_at) from {{ this }})
{% endif %}
