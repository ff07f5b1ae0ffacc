"""The thin layer between ASGI and the endpoints: routes, calls, answers.

Written for this API rather than taken from a framework: a push of one message has to cost little more than
parsing it, and the same table of routes gives the OpenAPI document.
"""

from .answer import NOTHING, Answer, Error, Lines, json
from .app import Admit, App, admit_everybody
from .call import ANONYMOUS, Call, Caller, Headers
from .cors import Cors
from .route import Right, Route

__all__ = [
    "ANONYMOUS",
    "NOTHING",
    "Admit",
    "Answer",
    "App",
    "Call",
    "Caller",
    "Cors",
    "Error",
    "Headers",
    "Lines",
    "Right",
    "Route",
    "admit_everybody",
    "json",
]
