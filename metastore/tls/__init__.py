"""TLS for both sides: key stores of any kind, the contexts made of them, and taking up files that were renewed."""
