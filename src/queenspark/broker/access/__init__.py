"""Access control: authentication and authorization.

`Gate.admit` runs before every handler. A credential is an API key (`api_keys`) or a token (`tokens`). It is
verified once and then cached by its hash until it may have changed.
"""

from .gate import Gate

__all__ = ["Gate"]
