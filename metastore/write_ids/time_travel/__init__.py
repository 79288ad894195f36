"""Write ids that were committed at an instant of the past."""
