"""Lock requests between their calls: parked calls, and the connection of each request."""
