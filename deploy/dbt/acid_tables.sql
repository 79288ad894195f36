{#
  ACID tables for dbt-spark: `file_format: acid`. Copy this file into the macros of your project; docs/how-to/dbt.md says more.

  dbt-spark knows which of its own file formats can be merged into, and refuses others before Spark is asked. Each macro here stands
  before that of dbt-spark, or of dbt, which goes on doing all the rest.
#}

{# Here and not by tblproperties, since seeds have none. #}
{% macro spark__file_format_clause() %}
  {%- if config.get('file_format') != 'acid' -%}
    {{ return(dbt.spark__file_format_clause()) }}
  {%- endif -%}
  {%- set properties = {'transactional': 'true'} -%}
  {%- do properties.update(config.get('tblproperties') or {}) -%}
  stored as orc
  tblproperties (
    {%- for name, value in properties.items() -%}
      '{{ name }}' = '{{ value }}' {%- if not loop.last %}, {% endif -%}
    {%- endfor -%}
  )
{% endmacro %}

{% macro spark__tblproperties_clause() -%}
  {%- if config.get('file_format') != 'acid' -%}
    {{ return(dbt.spark__tblproperties_clause()) }}
  {%- endif -%}
{%- endmacro %}

{% macro dbt_spark_validate_get_file_format(raw_file_format) %}
  {% do return(raw_file_format if raw_file_format == 'acid' else dbt.dbt_spark_validate_get_file_format(raw_file_format)) %}
{% endmacro %}

{# What a Delta table can do, these can. #}
{% macro dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format) %}
  {% do return(dbt.dbt_spark_validate_get_incremental_strategy(raw_strategy, 'delta' if file_format == 'acid' else file_format)) %}
{% endmacro %}

{# Spark's tables have no database above their schema; dbt-spark's own snapshot says none here as well. #}
{% macro spark__get_or_create_relation(database, schema, identifier, type) %}
  {% do return(dbt.default__get_or_create_relation(none, schema, identifier, type)) %}
{% endmacro %}

{# dbt's own snapshot, whose steps dbt-spark has; that of dbt-spark differs from it by refusing other formats, and by a view that stays. #}
{% materialization snapshot, adapter='spark' %}
  {% if config.get('file_format') == 'acid' %}
    {{ return(dbt.materialization_snapshot_default()) }}
  {% else %}
    {{ return(dbt.materialization_snapshot_spark()) }}
  {% endif %}
{% endmaterialization %}
