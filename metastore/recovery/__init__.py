"""Recovery after a restore: ids go on above all that were ever allocated, and unknown write ids are void (ADR 0049)."""
