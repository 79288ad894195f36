"""Figures for operators: counts and ages of compactions, transactions and locks."""
