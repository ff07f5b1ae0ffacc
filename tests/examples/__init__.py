"""The examples: each is run as a reader runs it, and prints the expected output."""
