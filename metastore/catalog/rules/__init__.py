"""Rules of the catalog: pure functions that check and complete what clients send."""
