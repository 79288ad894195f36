"""Rare concepts of Hive's catalog: each is a module of rules with a table of its methods (ADR 138)."""
