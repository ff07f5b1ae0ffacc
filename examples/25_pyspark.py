"""A PySpark program that reads a queue as a stream and writes to another queue.

Queues are a Spark data source, `format("queen")`. It connects to PostgreSQL directly: to
QUEENSPARK_DATABASE_URL, or to the server that `queenspark up` started in this folder. Prints the messages
of the second queue.
"""

from tempfile import TemporaryDirectory

from pyspark.sql.functions import expr, from_json

from queenspark import Outgoing, Queen
from queenspark.embedded import EmbeddedPostgres
from queenspark.pipeline import register, start_session
from queenspark.settings import Settings

ORDERS = [("alice", 120), ("bob", 15), ("alice", 40), ("carol", 300)]

settings = Settings.from_env()
url = settings.database_url or EmbeddedPostgres(settings.data_dir).url

with Queen() as queen, TemporaryDirectory() as checkpoint:
    orders, large_orders = queen.queue("spark-orders"), queen.queue("large-orders")
    for queue in (orders, large_orders):
        queue.delete()
    orders.push([Outgoing({"amount": amount}, partition=customer) for customer, amount in ORDERS])

    spark = start_session(settings)
    register(spark)
    found = spark.readStream.format("queen").option("url", url).option("queue", "spark-orders").load()
    read = found.select("partition", from_json("data", "amount int").alias("data"))
    large = read.where("data.amount >= 100")
    query = (
        large.withColumn("data", expr("struct(data.amount, data.amount DIV 5 AS tax)"))
        .writeStream.format("queen")
        .option("url", url)
        .option("queue", "large-orders")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()

    large_orders.each().idle(1).consume(lambda order: print(order.partition, order.data))
