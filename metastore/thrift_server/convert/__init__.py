"""Thrift structs to values, and back."""
