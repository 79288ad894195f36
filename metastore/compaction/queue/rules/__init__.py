"""The decisions about requests.

``requests``: states, duplicates, retries, retention; ``properties``: what of a table or a request may reach a job;
``turns``: which of those that wait is next; ``scaling``: how many Workers a pool needs.
"""
