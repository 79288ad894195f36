"""TLS for both sides: key stores of any kind, the contexts made of them, and the reload of renewed files."""
