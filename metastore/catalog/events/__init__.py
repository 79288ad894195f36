"""Events of the catalog for the notification log."""
