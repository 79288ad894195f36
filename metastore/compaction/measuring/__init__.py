"""What operators watch: counts and ages of compactions, transactions and locks."""
