"""Delegation tokens: proofs that a client gets after Kerberos, and hands to jobs that have no ticket.

Rule: the password of a token follows from its identifier and a master key, so each replica can check each token, and no
password is stored.
"""
