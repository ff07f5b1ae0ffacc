# Made from aio/__init__.py by `make format`: change that file, not this one.
"""The asynchronous client, from which the synchronous one is generated."""
