"""Identity of clients, and access control: a seam for each."""
