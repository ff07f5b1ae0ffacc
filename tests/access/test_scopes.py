"""Scopes: patterns of names, the rights they grant, and their combination with roles."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenspark.broker.http import Caller, Right, Scope, ScopeError, parse_scopes


@pytest.mark.parametrize(
    ("text", "right", "name", "granted"),
    [
        ("queue:orders.*:push", Right.QUEUE_PUSH, "orders.new", True),
        ("queue:orders.*:push", Right.QUEUE_PUSH, "orders", False),
        ("queue:orders.*:push", Right.QUEUE_CONSUME, "orders.new", False),
        ("queue:orders:*", Right.QUEUE_ADMIN, "orders", True),
        ("queue:a:b:push", Right.QUEUE_PUSH, "a:b", True),
        ("queue:orders:admin", Right.QUEUE_READ, "orders", True),
        ("queue:orders:admin", Right.QUEUE_PUSH, "orders", False),
        ("stream:shop/*:consume", Right.STREAM_CONSUME, "shop/visits", True),
        ("stream:shop/*:consume", Right.STREAM_CONSUME, "shops/visits", False),
        ("stream:shop/*:consume", Right.QUEUE_CONSUME, "shop/visits", False),
        ("jobs:admin", Right.JOB_ADMIN, "anything", True),
        ("jobs:admin", Right.STREAM_ADMIN, "anything", False),
        ("system:read", Right.SYSTEM_READ, "", True),
        ("system:read", Right.SYSTEM_ADMIN, "", False),
    ],
)
def test_a_scope_gives_an_action_on_names(text: str, right: Right, name: str, granted: bool) -> None:
    scope = Scope.parse(text)
    assert (scope.grants(right) and scope.covers(name)) is granted
    assert Scope.parse(str(scope)) == scope


@pytest.mark.parametrize(
    "text",
    ["", "queue", "queue:push", "queue::push", "topic:a:push", "queue:a:pull", "access:admin", "queue:a:",
     "accesss:admin", "system:x:read", "known:*:*", "queue:" + "a*" * 9 + ":push",
     "queue:" + "a" * 300 + ":push"],
)  # fmt: skip
def test_an_invalid_scope_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ScopeError, match="scope"):
        Scope.parse(text)


@given(
    st.text("ab*", min_size=1, max_size=8).filter(lambda text: text.count("*") <= 8),
    st.text("ab", max_size=10),
)
def test_patterns_are_those_of_the_shell(pattern: str, name: str) -> None:
    assert Scope("queue", pattern, "push").covers(name) == fnmatch.fnmatchcase(name, pattern)


def test_a_role_and_scopes_allow_their_intersection() -> None:
    both = Caller.known("x", "key", "read-only", parse_scopes(["queue:a:*", "jobs:admin"]))
    assert both.may(Right.QUEUE_READ, "a")
    assert not both.may(Right.QUEUE_READ, "b")
    assert not both.can(Right.QUEUE_PUSH)
    assert not both.can(Right.JOB_ADMIN)
    assert both.may(Right.JOB_READ, "any job")
    assert not both.can(Right.SYSTEM_READ)


@pytest.mark.parametrize(
    ("scope", "right", "queue", "granted"),
    [
        ("queues:*", Right.QUEUE_CONSUME, "windows:shop/visits", False),
        ("queue:windows:shop/*:*", Right.QUEUE_READ, "windows:shop/visits", False),
        ("stream:shop/*:consume", Right.QUEUE_CONSUME, "windows:shop/visits", True),
        ("stream:shop/*:consume", Right.QUEUE_READ, "windows:shop/visits", False),
        ("stream:shop/*:consume", Right.QUEUE_CONSUME, "windows:shops/visits", False),
        ("stream:shop/*:consume", Right.QUEUE_CONSUME, "shop/visits", False),
        ("stream:a/b/c:read", Right.QUEUE_READ, "windows:a%2Fb/c", True),
        ("stream:shop/*:admin", Right.QUEUE_ADMIN, "windows:shop/visits", True),
        ("streams:*", Right.QUEUE_PUSH, "windows:shop/visits", False),
        ("streams:*", Right.QUEUE_CONSUME, "windows:%select/7", False),
        ("streams:*", Right.QUEUE_READ, "windows:%sink/pages", False),
    ],
)
def test_a_window_queue_needs_the_right_on_its_stream(
    scope: str, right: Right, queue: str, granted: bool
) -> None:
    caller = Caller.known("x", "key", None, parse_scopes([scope, "queue:other:*"]))
    assert caller.may(right, queue) is granted


def test_without_role_and_scopes_only_the_identity_is_readable() -> None:
    assert Caller.known("x", "token", None, None).rights == {Right.PUBLIC, Right.KNOWN}


def test_no_scope_lets_anybody_make_keys() -> None:
    everything = parse_scopes(["queues:*", "streams:*", "jobs:*", "system:*"])
    assert Caller.known("x", "key", None, everything).rights == set(Right) - {Right.ACCESS_ADMIN}
    assert not Caller.known("x", "key", "admin", everything).can(Right.ACCESS_ADMIN)


def test_an_admin_may_do_everything() -> None:
    assert Caller.known("x", "key", "admin", None).rights == set(Right)
