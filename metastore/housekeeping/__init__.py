"""What ends and removes what nobody needs any more, in all concepts."""
