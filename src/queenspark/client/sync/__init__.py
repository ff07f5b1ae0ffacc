# Made from aio/__init__.py by `make format`: change that file, not this one.
"""The asynchronous client. The synchronous one is made from it."""
