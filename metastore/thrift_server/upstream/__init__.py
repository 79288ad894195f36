"""The upstream, another Hive metastore: calls of the catalog go there as the bytes that they came as (ADR 50)."""
