"""Garbage collection in Spark's Python workers.

Spark collects garbage after every task of a worker. With our modules and their dependencies that is 140,000
objects, none of them garbage, and takes 75 ms of processor time: more than many tasks.
"""

import gc
from itertools import count

_TASKS = 5
_task = count()


def exclude_modules_from_gc() -> None:
    """Exclude all existing objects from garbage collection in the first tasks of a process.

    Called at the start of each task. The first tasks import modules and fill caches; later ones leave little.
    """
    if next(_task) < _TASKS:
        gc.freeze()
