"""The wire format: protocols, the end of a message, field tables, bounds of decoding."""
