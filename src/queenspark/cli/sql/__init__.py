"""`queenspark sql`: statements at a prompt, from the command line, and from files."""
