"""Runs scenarios with the installed release of the client.

`python -m tests.wire.clients.run URL` prints the release; then it reads a scenario and a queue from each line
of its input, as JSON, and writes a line for each: how the scenario failed, or null.
"""

import asyncio
import json
import sys
import traceback

import queen

from tests.wire.clients.catalogue import SCENARIOS

PATIENCE = 60
RESULT = "result: "


async def run(url: str, scenario: str, name: str) -> None:
    """Run the scenario with a client that is closed afterwards."""
    async with queen.Queen(url) as client:
        await SCENARIOS[scenario](client, name)


def failure(url: str, scenario: str, name: str) -> str | None:
    """How a scenario fails, if it does."""
    try:
        asyncio.run(asyncio.wait_for(run(url, scenario, name), PATIENCE))
    except Exception:  # noqa: BLE001 - the test that asks raises it
        return traceback.format_exc()
    return None


def report(text: str | None) -> None:
    """Write a line of ours, despite other output of the client."""
    sys.stdout.write(f"\n{RESULT}{json.dumps(text)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    report(queen.__version__)
    for line in sys.stdin:
        report(failure(sys.argv[1], *json.loads(line)))
