"""Files that transactions wrote, as the notification log reports them."""
