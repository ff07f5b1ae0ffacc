"""Aggregate CSV files with SQL: a finite source emits one row per key.

Spark reads the files; they never pass through the queue. Prints the total of each country.
"""

from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from queenspark import Queen

SALES = {
    "may.csv": "country,amount\nNO,12.5\nIT,4\nNO,7.5\n",
    "june.csv": "country,amount\nIT,6\nAT,3\n",
}

with Queen() as queen, TemporaryDirectory() as folder:
    for name, text in SALES.items():
        Path(folder, name).write_text(text)
    queen.sql("DROP SOURCE IF EXISTS csv_sales CASCADE")
    queen.sql(
        "CREATE SOURCE csv_sales (country STRING, amount DOUBLE)"
        f" WITH (connector = 'files', path = '{folder}', format = 'csv', mode = 'once')"
    )
    totals = "SELECT country, COUNT(*) AS n, SUM(amount) AS total FROM csv_sales GROUP BY country EMIT FINAL"
    for row in sorted(queen.sql(f"{totals} LIMIT 3"), key=itemgetter("country")):
        print(f"{row['country']}: {row['total']} in {row['n']} sales")
