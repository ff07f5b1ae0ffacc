"""Errors of the window engine."""


class SpecError(ValueError):
    """A window definition that cannot be; the message names the field."""


class StateError(ValueError):
    """Bytes that are not a state of this engine."""


class InputError(ValueError):
    """Records whose columns are not those of their spec."""


class RecordsNeeded(Exception):
    """Merged records (merging.py) are late: the step has to be taken with the single records."""
