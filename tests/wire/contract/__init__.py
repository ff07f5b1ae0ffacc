"""The contract call by call: statuses, messages, field names and what each option does."""
