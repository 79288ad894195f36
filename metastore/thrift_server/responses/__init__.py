"""Answers that are long or shared: lists in pieces, one reading for several clients, kept bytes of partitions."""
