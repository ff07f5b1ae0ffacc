"""The HTTP API: validation, limits, long polls. Stateless: run as many as you like on one database."""
