"""What compactions and aborts leave behind to be removed."""
