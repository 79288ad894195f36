"""Which write ids were committed at an instant of the past."""
