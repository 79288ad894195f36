"""Conversions of Thrift structs to values, and back."""
