"""The Thrift server: it turns bytes into calls, and answers of handlers into bytes."""
