"""The connector `queen`."""
