"""The client against a real broker, and a network that fails."""
