"""The thin layer between ASGI and the endpoints: routes, calls, responses.

Custom rather than a framework: a push of one message has to cost little more than parsing it, and the same
route table generates the OpenAPI document.
"""

from .app import Admit, App
from .call import Call, Headers
from .caller import ANONYMOUS, NOBODY, Caller
from .cors import Cors
from .forbidden import Forbidden
from .open_gate import OpenGate
from .response import NOTHING, Error, Lines, Response, json
from .right import Right
from .route import Route
from .scope import Scope, ScopeError, parse_scopes

__all__ = [
    "ANONYMOUS",
    "NOBODY",
    "NOTHING",
    "Admit",
    "App",
    "Call",
    "Caller",
    "Cors",
    "Error",
    "Forbidden",
    "Headers",
    "Lines",
    "OpenGate",
    "Response",
    "Right",
    "Route",
    "Scope",
    "ScopeError",
    "json",
    "parse_scopes",
]
