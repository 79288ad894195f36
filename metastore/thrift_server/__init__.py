"""The Thrift side: bytes in, a handler's answer out."""
