"""The one-billion-row challenge: minimum, mean and maximum of each weather station.

Lines are `station;value`, without a header. Here there are a few thousand; the statement is the same for
files larger than memory. Prints the stations in order.
"""

import random
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from queenspark import Queen

MEANS = {"Abha": 18.0, "Bern": 9.0, "Cairo": 22.0}
ROWS = 6_000

chance = random.Random(1)
lines = (f"{name};{chance.gauss(MEANS[name], 5):.1f}\n" for name in chance.choices(list(MEANS), k=ROWS))

with Queen() as queen, TemporaryDirectory() as folder:
    Path(folder, "measurements.txt").write_text("".join(lines))
    queen.sql("DROP SOURCE IF EXISTS measurements CASCADE")
    queen.sql(
        "CREATE SOURCE measurements (station STRING, value DOUBLE) WITH (connector = 'files',"
        f" path = '{folder}', format = 'csv', delimiter = ';', header = 'false', mode = 'once')"
    )
    query = (
        "SELECT station, MIN(value) AS smallest, ROUND(AVG(value), 1) AS mean, MAX(value) AS largest"
        " FROM measurements GROUP BY station EMIT FINAL LIMIT 3"
    )
    for row in sorted(queen.sql(query), key=itemgetter("station")):
        print(f"{row['station']}={row['smallest']}/{row['mean']}/{row['largest']}")
