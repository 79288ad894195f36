"""Who is on the other side of a connection, and what they may call: a seam for each."""
