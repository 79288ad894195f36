"""Connections: sockets, TLS handshakes, limits by address, and the bytes of a message."""
