"""Procedures for CALL: one file each, named as the CALL is named; `registry` has the table of all."""
