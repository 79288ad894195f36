"""The planner: plans of a statement's reads and writes, for engines that only execute them.

Rule: a planner keeps no state between two calls. A call names its transaction and snapshot, so the next call may go to
any other planner. A killed planner loses only the calls that it was answering.
"""
