"""The checks of CREATE for Kafka: that the brokers respond, that the topic exists, and its columns."""

from __future__ import annotations

from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin._metadata import ClusterMetadata

from ...sql.errors import did_you_mean
from ...sql.sampling import sampled_paths
from ..checks import Columns, Unreachable
from ..reader import ReadFailed
from .kafka_options import Faults, KafkaOptions, opened, said
from .kafka_position import Range
from .sample import values
from .topic import Topic, Unavailable

TIMEOUT_SECONDS = 5.0
_SAMPLE = 1000  # messages
_DENIED = {
    KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.ILLEGAL_SASL_STATE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
}  # fmt: skip
_UNKNOWN = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}


def check_source(options: dict[str, str], columns: Columns) -> Columns:
    """Return the declared columns, or those of the newest messages. Raises Unreachable."""
    chosen = KafkaOptions.of(options)
    check_topic(chosen)
    if chosen.format != "json":
        if columns and [(name.lower(), kind) for name, kind in columns] != [("value", "STRING")]:
            raise Unreachable(
                f"the format {chosen.format} has one column, value STRING; omit the columns, or choose json"
            )
        return (("value", "STRING"),)
    if columns:
        return columns
    found = sampled_paths(_newest(chosen))
    names = {str(path[0]): kind for path, kind in found.items() if len(path) == 1}
    if not names:
        raise Unreachable(
            f"the topic {chosen.topic} is empty, or its newest messages have no columns as json; "
            "declare them: CREATE SOURCE name (column type, …) WITH (…)"
        )
    return tuple((name, str(kind)) for name, kind in names.items() if not name.startswith("_"))


def check_sink(options: dict[str, str]) -> None:
    """Check that a topic is writable, as far as its metadata show. Raises Unreachable."""
    chosen = KafkaOptions.of(options)
    opened(Producer, chosen.producer())  # rejects settings that an idempotent producer cannot have
    check_topic(chosen)


def check_topic(options: KafkaOptions) -> None:
    """Check that the brokers respond and that the topic exists. Raises Unreachable."""
    faults = Faults()
    consumer: Consumer = opened(Consumer, options.consumer(error_cb=faults))
    try:
        error = _asked(consumer, options.topic, faults).topics[options.topic].error
        if error is None:
            return
        if error.code() in _UNKNOWN:
            raise _unknown(options, list(consumer.list_topics(timeout=TIMEOUT_SECONDS).topics))
    except KafkaException as failure:
        error = faults.reason(failure.args[0])
    finally:
        consumer.close()
    raise _unreachable(options, error)


def _asked(consumer: Consumer, topic: str, faults: Faults) -> ClusterMetadata:
    """Return the metadata of a topic. Gives up early once librdkafka has reported an error."""
    deadline = monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            found: ClusterMetadata = consumer.list_topics(topic, timeout=1)
            return found
        except KafkaException:
            consumer.poll(0)  # lets librdkafka report its errors
            if faults.is_told or monotonic() > deadline:
                raise


def _unknown(options: KafkaOptions, topics: list[str]) -> Unreachable:
    hint = did_you_mean(options.topic, sorted(name for name in topics if not name.startswith("__")))
    return Unreachable(f"the brokers have no topic {options.topic}{hint or '; create it first'}")


def _unreachable(options: KafkaOptions, error: KafkaError) -> Unreachable:
    brokers, reason = options.brokers, said(error)
    if error.code() in _DENIED:
        return Unreachable(
            f"{brokers}: access denied: {reason}; check kafka.security.protocol, "
            "kafka.sasl.mechanism, kafka.sasl.username, kafka.sasl.password and the user's permissions"
        )
    # Alerts of the brokers, such as a missing client certificate, are transport errors.
    if error.code() == KafkaError._SSL or "SSL" in reason:
        return Unreachable(
            f"{brokers}: TLS failed: {reason}; check kafka.security.protocol and the options kafka.ssl.…"
        )
    if error.code() == KafkaError._ALL_BROKERS_DOWN:  # librdkafka has no other error, as after a refusal
        protocol = options.settings.get("security.protocol", "plaintext")
        return Unreachable(
            f"{brokers} cannot be reached: the connection is closed as soon as it is opened; "
            f"kafka.security.protocol is {protocol}: check that the brokers expect it, and not TLS or SASL"
        )
    return Unreachable(
        f"{brokers} cannot be reached: {reason}; check the option brokers, "
        "and kafka.security.protocol if the brokers require TLS or SASL"
    )


def _newest(options: KafkaOptions) -> list[bytes]:
    """Return the values of the newest messages."""
    topic = Topic(options)
    try:
        ends, starts = topic.ends(), topic.starts()
        each = -(-_SAMPLE // len(ends))
        ranges = [
            Range(partition, max(start, end - each), end)
            for partition, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]
        return values(options, ranges)
    except (ReadFailed, Unavailable) as error:
        raise Unreachable(str(error)) from None
    finally:
        topic.close()
