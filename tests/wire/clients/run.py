"""Runs one scenario with whatever release of the client can be imported.

`python -m tests.wire.clients.run URL SCENARIO QUEUE`: says which release it was; fails as the scenario does.
"""

import asyncio
import sys

import queen

from tests.wire.clients.catalogue import SCENARIOS


async def run(url: str, scenario: str, name: str) -> None:
    """Run the scenario with a client that is closed afterwards."""
    async with queen.Queen(url) as client:
        await SCENARIOS[scenario](client, name)


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:4]))
    sys.stdout.write(f"\n{queen.__version__}\n")
