"""The planner: what is to be read and written for a statement, for engines that only execute it.

Rule: it keeps nothing between two calls. A call says in which transaction and snapshot it is, so the next one may go to
any other planner, and a planner that is killed takes nothing with it but the calls that it was answering.
"""
