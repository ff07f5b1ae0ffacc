"""CREATE reports problems with a topic, and never shows a secret."""

from tests.kafka.topics import Topics


def test_brokers_that_are_away(topics: Topics) -> None:
    reason = topics.refused(topics.source("n bigint", brokers="127.0.0.1:1"))
    assert reason.startswith("127.0.0.1:1 cannot be reached: ")
    assert "Connection refused" in reason


def test_a_topic_that_is_not_there(real_topics: Topics) -> None:
    name = real_topics.create("orders")
    reason = real_topics.refused(real_topics.source("n bigint", topic="order"))
    assert reason.startswith(f"the brokers have no topic {real_topics.name('order')}")
    assert name in reason


def test_brokers_without_the_wanted_access(real_topics: Topics) -> None:
    real_topics.create()
    given = {"kafka__security__protocol": "sasl_plaintext", "kafka__sasl__mechanism": "PLAIN",
             "kafka__sasl__username": "anna", "kafka__sasl__password": "tiger77"}  # fmt: skip
    reason = real_topics.refused(real_topics.source("n bigint", **given))
    assert "tiger77" not in reason
    assert real_topics.kafka.brokers in reason


def test_options_that_librdkafka_does_not_have(topics: Topics) -> None:
    topics.create()
    reason = topics.refused(topics.source("n bigint", kafka__nonsense="1"))
    assert "the option kafka.nonsense cannot be set: it is not a supported setting" in reason


def test_options_that_are_not_for_users(topics: Topics) -> None:
    topics.create()
    for name in ("isolation.level", "enable.auto.commit", "plugin.library.paths", "ssl.providers"):
        reason = topics.refused(topics.source("n bigint", **{f"kafka.{name}": "x"}))
        assert f"kafka.{name} cannot be set" in reason


def test_secrets_are_not_shown(topics: Topics) -> None:
    topics.create()
    given = {"kafka__ssl__key__password": "tiger77", "kafka__fetch__wait__max__ms": "50"}
    shown = topics.run(topics.source("n bigint", **given))
    shown += topics.run("describe {s}; describe extended {s}; show sources")
    shown += topics.run(
        "create stream {o} as select n from {s}; describe extended {o}; explain select n from {s}"
    )
    shown.append(topics.job("o"))
    assert "tiger77" not in str(shown)
    assert "fetch.wait.max.ms` = '50'" in str(shown)
