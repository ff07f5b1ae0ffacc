"""What the published Queen clients are used for, as scenarios that run with either release.

A scenario is a public coroutine function of one of the modules here: it gets a client and a name that
nobody else uses, and its own name is its promise. `tests/wire/test_queen_client.py` runs them all.
"""
