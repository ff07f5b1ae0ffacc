"""SQL statements over HTTP: validated here, stored as desired state, run by the pipeline."""

from .catalogue import BrokerCatalogue, Resolved
from .executor import Executor
from .names import split_name

__all__ = ["BrokerCatalogue", "Executor", "Resolved", "split_name"]
