"""The examples: each is run as a reader runs it, and prints what it should."""
