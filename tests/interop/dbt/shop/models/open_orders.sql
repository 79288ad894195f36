{{ config(materialized='view') }}
select o.* from {{ ref('orders') }} o join {{ ref('states') }} s on o.state = s.state where s.is_open
