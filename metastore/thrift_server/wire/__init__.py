"""Bytes and what they mean: protocols, the end of a message, field tables, bounds of decoding."""
