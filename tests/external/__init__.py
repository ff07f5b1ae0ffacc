"""Jobs that read and write outside."""
