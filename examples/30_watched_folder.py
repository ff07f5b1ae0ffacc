"""A watched folder: files that are moved into it become messages.

Write a file elsewhere and move it when it is complete; records that are read twice are pushed once.
Prints the readings of each file that are too warm.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from queenspark import LeasedMessage, Queen

FILES = [
    '{"sensor": "cellar", "celsius": 11.5}\n{"sensor": "attic", "celsius": 34.0}\n',
    '{"sensor": "attic", "celsius": 29.0}\n{"sensor": "oven", "celsius": 210.0}\n',
]


def warn(message: LeasedMessage) -> None:
    print(f"{message.data['sensor']}: {message.data['celsius']} °C")


with Queen() as queen, TemporaryDirectory() as folder, TemporaryDirectory() as elsewhere:
    queen.sql("DROP STREAM IF EXISTS too_warm CASCADE; DROP SOURCE IF EXISTS warm_files")
    queen.sql(
        "CREATE SOURCE warm_files (sensor STRING, celsius DOUBLE)"
        f" WITH (connector = 'files', path = '{folder}', format = 'json');"
        "CREATE STREAM too_warm AS SELECT * FROM warm_files WHERE celsius > 30"
    )
    for number, text in enumerate(FILES):
        complete = Path(elsewhere, f"{number}.json")
        complete.write_text(text)
        complete.rename(Path(folder, complete.name))
        queen.queue("too_warm").group("alarm").each().limit(1).consume(warn)
    queen.sql("DROP STREAM too_warm CASCADE; DROP SOURCE warm_files")
