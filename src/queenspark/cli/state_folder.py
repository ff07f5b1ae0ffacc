"""The folder for everything that commands keep for the next time: history, positions of imports."""

import os
from pathlib import Path


def state_folder() -> Path:
    """The user's state folder, which only they can read; raises OSError or RuntimeError without one."""
    given = os.environ.get("XDG_STATE_HOME", "")
    base = Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "state"
    folder = base / "queenspark"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
