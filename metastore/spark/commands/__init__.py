"""What each statement does, once it is known which it is: ``dispatch`` runs the function for a statement value."""
