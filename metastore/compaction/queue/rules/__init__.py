"""The decisions about requests.

``requests``: states, duplicates, retries, retention; ``properties``: the properties of a table or a request that may
reach a job; ``turns``: the order of waiting requests; ``scaling``: the number of Workers that a pool needs.
"""
