"""The contract call by call: statuses, messages, field names and the effect of each option."""
