"""Settings of a service: what is in range, who may ask, and where the token comes from."""

import pytest

from kgkit.errors import NotThere, UsageError
from kgkit.serving.settings import (
    TOKEN_VARIABLE,
    Limits,
    ServiceSettings,
    is_loopback,
    read_limits,
    read_token,
)

TOKEN = "0123456789abcdef0123"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_needs_no_token(host):
    assert is_loopback(host)
    assert ServiceSettings(host=host).token is None


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "192.168.1.4", "example.org", "127.0.0.1.evil.example"]
)
def test_an_address_that_others_reach_needs_a_token(host):
    assert not is_loopback(host)
    with pytest.raises(UsageError, match=f"--token-file FILE, or the variable {TOKEN_VARIABLE}"):
        ServiceSettings(host=host)
    assert ServiceSettings(host=host, token=TOKEN).token == TOKEN


def test_the_names_of_the_service_are_loopback_its_address_and_those_that_are_allowed():
    settings = ServiceSettings(host="10.0.0.1", token=TOKEN, allowed_hosts=("KG.example",))
    assert settings.host_names == ["localhost", "127.0.0.1", "[::1]", "10.0.0.1", "KG.example"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_at_all_addresses_any_name_will_do_unless_some_are_allowed(host):
    assert ServiceSettings(host=host, token=TOKEN).host_names == ["*"]
    assert "kg.example" in ServiceSettings(host=host, token=TOKEN, allowed_hosts=("kg.example",)).host_names


@pytest.mark.parametrize(
    ("name", "value"), [("port", -1), ("port", 65_536), ("workers", 0), ("workers", 257)]
)
def test_a_setting_out_of_range_is_refused(name, value):
    with pytest.raises(UsageError, match=name):
        ServiceSettings(**{name: value})


@pytest.mark.parametrize("name", sorted(Limits.__dataclass_fields__))
def test_a_limit_of_nothing_is_refused(name):
    with pytest.raises(UsageError, match=name):
        Limits(**{name: 0})


def test_limits_come_as_names_with_numbers():
    limits = read_limits(["characters=20000", "seconds=2.5", "seconds=3"])
    assert (limits.characters, limits.seconds, limits.documents) == (20_000, 3.0, Limits().documents)
    assert read_limits([]) == Limits()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("charcters=5", "no limit named 'charcters'; .* did you mean 'characters'"),
        ("", "no limit named ''"),
        ("__class__=5", "no limit named '__class__'"),
        ("characters", "it is NAME=NUMBER, and characters is a whole number"),
        ("characters=1.5", "characters is a whole number"),
        ("seconds=fast", "seconds is a number"),
        ("characters=0", "characters is 0"),
        ("seconds=nan", "seconds is nan"),
        ("seconds=inf", "seconds is inf"),
    ],
)
def test_a_limit_that_is_none_is_refused(text, message):
    with pytest.raises(UsageError, match=message):
        read_limits([text])


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("short", "has 5 characters; it has 16 at least: `openssl rand -hex 32`"),
        ("with a space in it, and long", "other than letters, digits and signs of ASCII"),
        ("0123456789abcdef\n", "other than letters"),
        ("0123456789abcdeé", "other than letters"),
    ],
)
def test_a_token_that_is_guessed_or_that_no_header_carries_is_refused(token, message):
    with pytest.raises(UsageError, match=message):
        ServiceSettings(token=token)


def test_the_token_comes_from_the_file_without_its_line_end(tmp_path, monkeypatch):
    monkeypatch.setenv(TOKEN_VARIABLE, "of-the-variable-0000")
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    assert read_token(path) == TOKEN
    assert read_token(None) == "of-the-variable-0000"


def test_without_file_and_variable_there_is_no_token(monkeypatch):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert read_token(None) is None
    monkeypatch.setenv(TOKEN_VARIABLE, "")
    assert read_token(None) is None


def test_a_file_without_a_token_is_named(tmp_path):
    with pytest.raises(NotThere, match=r"no token in .*missing"):
        read_token(tmp_path / "missing")
    path = tmp_path / "latin"
    path.write_bytes(b"\xe9" * 20)
    with pytest.raises(NotThere, match="it is not UTF-8"):
        read_token(path)
    path.write_text("")
    with pytest.raises(UsageError, match="has 0 characters"):
        read_token(path)
