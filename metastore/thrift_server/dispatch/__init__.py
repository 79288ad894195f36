"""A call on its way to a handler: reception, workers and lanes, middleware, errors, access to tables."""
