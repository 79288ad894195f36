"""Explanations why a table or partition is not compacted or not cleaned, and plans of compactions."""
