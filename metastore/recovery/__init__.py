"""After a restore: ids go on above all that were ever allocated, and what nobody remembers is void (ADR 0049)."""
