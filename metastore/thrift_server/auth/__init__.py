"""Who is on the other side of a connection, and what they may call: one seam for each."""
