"""The HTTP port for operators and probes."""
