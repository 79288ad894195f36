"""The way of a call to a handler: workers and lanes, middleware, errors, access to tables."""
