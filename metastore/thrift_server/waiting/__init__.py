"""Lock requests between their calls: parked calls, and which connection a lock was requested over."""
