"""Errors of the window engine."""


class SpecError(ValueError):
    """An invalid window definition; the message names the field."""


class StateError(ValueError):
    """Bytes that are not a state of this engine."""


class InputError(ValueError):
    """Records with columns other than those of their spec."""


class RecordsNeeded(Exception):
    """Merged records (merging.py) are late: the step must be repeated with single records."""
