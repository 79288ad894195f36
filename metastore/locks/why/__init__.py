"""Why something waits."""
