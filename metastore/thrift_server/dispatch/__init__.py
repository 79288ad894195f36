"""A call on its way to a handler: workers and lanes, middleware, errors, access to tables."""
