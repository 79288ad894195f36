"""What transactions wrote, file by file, as the notification log tells it."""
