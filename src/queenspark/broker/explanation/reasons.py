"""The reasons why a window is not sealed, most likely first."""

from __future__ import annotations

from .case import Case, Reason
from .holdups import of_job, of_log, of_pipeline, of_run, open_transaction
from .window_reasons import of_retention, of_window

_LONG_SECONDS = 60.0  # report a transaction this old, even if another reason holds a window up


def reasons(case: Case) -> list[Reason]:
    """Return all applicable reasons, most likely first; never empty."""
    found = [*of_pipeline(case), *of_job(case), *of_run(case), *of_log(case)]
    if not any(reason.code == "finished" for reason in found):
        found += of_window(case, is_blocked=bool(found))
    found += of_retention(case)
    if case.holder is not None and not any(reason.code == "open_transaction" for reason in found):
        seconds = case.holder["seconds"] or 0.0
        if seconds >= _LONG_SECONDS:
            found.append(open_transaction(case, case.holder))
    return found
