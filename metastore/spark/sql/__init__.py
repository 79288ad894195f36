"""SQL text to statement values, and the SELECTs that statements need. Pure: no session, no file, no server."""
