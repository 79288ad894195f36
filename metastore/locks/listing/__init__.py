"""All locks at once, as show_locks lists them."""
