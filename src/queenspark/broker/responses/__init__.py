"""Response bodies, as types: the OpenAPI document describes them, and a test compares the two."""
