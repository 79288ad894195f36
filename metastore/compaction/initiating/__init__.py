"""Due compactions."""
