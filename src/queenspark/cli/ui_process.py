"""The dashboard of `queenspark up`."""

from queenspark.cli.child_process import ChildProcess
from queenspark.settings import Settings

STOP_SECONDS = 5.0


class UiProcess(ChildProcess):
    """`queenspark ui`."""

    name = "The dashboard"
    back = "up again"
    steady_seconds = 10.0
    is_vital = False

    def __init__(self, settings: Settings, broker_url: str) -> None:
        super().__init__(
            "ui",
            settings,
            STOP_SECONDS,
            url=broker_url,
            ui_host=settings.ui_host,
            ui_port=settings.ui_port,
            insecure=settings.insecure,
        )
        self.url = ui_address(settings)


def ui_address(settings: Settings) -> str:
    """Where a browser on this machine finds the dashboard."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.ui_host, settings.ui_host)
    scheme = "http" if settings.ui_tls_certificate is None else "https"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.ui_port}"
