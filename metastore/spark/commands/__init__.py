"""A module per kind of statement; ``dispatch`` runs the function for a parsed statement."""
