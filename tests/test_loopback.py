"""Loopback hosts: only names and addresses that always mean this machine."""

import pytest

from queenspark.loopback import is_loopback, is_loopback_url

OURS = ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "::1"]
OTHERS = [
    "",
    "127.evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "0.0.0.0",
    "::",
    "10.0.0.1",
]


@pytest.mark.parametrize("host", OURS)
def test_localhost_and_loopback_addresses_are_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", OTHERS)
def test_no_other_host_is_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("url", ["http://localhost:80/x", "http://[::1]", "//127.0.0.1:6632", "//[::1]:6632"])
def test_the_host_of_a_url_counts_without_its_port(url: str) -> None:
    assert is_loopback_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost.evil.example/", "http://localhost@evil.example/", "http://127.0.0.1:80@evil.example/",
        "http://evil.example/localhost", "http://evil.example#@localhost",
        "//[::1", "//[localhost]", "//", "",
    ],
)  # fmt: skip
def test_a_url_that_only_contains_a_loopback_name_is_not_loopback(url: str) -> None:
    assert not is_loopback_url(url)
