"""Access control: who a caller is, and whether they may.

`Gate.admit` runs before every handler. A credential is an API key (`api_keys`) or a token (`tokens`), and is
checked once; until it may have changed, it is found again by its hash.
"""

from .gate import Gate

__all__ = ["Gate"]
