"""Writes the tables of rights in docs/security.md from the table of routes; with --check only compares."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from queenspark.broker.app import routes
from queenspark.broker.http import Right
from queenspark.broker.http.right import OF_EVERYBODY, PARTS, ROLES, UNNAMED

PAGE = Path(__file__).parent.parent / "docs" / "security.md"
_BLOCK = re.compile(r"(<!-- rights -->).*?(<!-- end of rights -->)", re.DOTALL)


def tables() -> str:
    """The rights of each role, and the right that each route requires."""
    lines = ["| right | roles | scope |", "|---|---|---|"]
    lines += [f"| `{right}` | {_roles(right)} | {_scope(right)} |" for right in Right]
    lines += ["", "| method | path | right |", "|---|---|---|"]
    lines += [f"| {route.method} | `{route.path}` | `{route.right}` |" for route in routes()]
    return "\n".join(lines)


def _roles(right: Right) -> str:
    if right is Right.PUBLIC:
        return "everybody, without a key or token"
    if right is Right.KNOWN:
        return "everybody with a key or token"
    return ", ".join(f"`{role}`" for role, rights in ROLES.items() if right in rights)


def _scope(right: Right) -> str:
    if right in OF_EVERYBODY:
        return ""
    if right in UNNAMED:
        return "none: only `admin` without scopes"
    if right in PARTS:
        return "comes with " + " or ".join(f"`{part}`" for part in Right if part in PARTS[right])
    name = (
        "" if right.kind == "system" else {"stream": "shop/*:", "job": "pages:"}.get(right.kind, "orders.*:")
    )
    return f"`{right.kind}:{name}{right.action}`"


def main() -> int:
    page = PAGE.read_text()
    made = _BLOCK.sub(lambda match: f"{match[1]}\n{tables()}\n{match[2]}", page)
    if made == page:
        return 0
    if "--check" in sys.argv:
        sys.stderr.write("docs/security.md is out of date: run tools/rights.py\n")
        return 1
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
