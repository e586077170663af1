"""pip's settings, as uv is told them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from engdiff.environments import index
from engdiff.environments.index import IndexSettings, pip_options, redact_url, uv_settings

BEST = {"UV_INDEX_STRATEGY": "unsafe-best-match"}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings of this machine."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.setattr(index, "_pip_files", lambda environ, home: _files(environ, home))
    monkeypatch.setattr(index, "_SYSTEM_UV", tmp_path / "etc-uv.toml")


def _files(environ: Mapping[str, str], home: Path) -> list[Path]:
    return [home / ".pip/pip.conf", home / ".config/pip/pip.conf"]


@pytest.mark.parametrize(
    ("environ", "variables"),
    [
        ({}, {}),
        ({"PIP_INDEX_URL": "https://a/simple"}, {"UV_DEFAULT_INDEX": "https://a/simple"}),
        ({"PIP_EXTRA_INDEX_URL": "https://a https://b"}, {"UV_INDEX": "https://a https://b"} | BEST),
        ({"PIP_EXTRA_INDEX_URL": ""}, {}),
        ({"PIP_FIND_LINKS": "https://a/w.html\n https://b"}, {"UV_FIND_LINKS": "https://a/w.html,https://b"}),
        ({"PIP_TRUSTED_HOST": "a b"}, {"UV_INSECURE_HOST": "a b"}),
        ({"PIP_CERT": "/c.pem"}, {"SSL_CERT_FILE": "/c.pem"}),
        ({"PIP_CERT": "/c.pem", "SSL_CERT_FILE": "/mine"}, {}),
        ({"PIP_DEFAULT_TIMEOUT": "60"}, {"UV_HTTP_TIMEOUT": "60"}),
        ({"PIP_PROXY": "http://p"}, {"HTTP_PROXY": "http://p", "HTTPS_PROXY": "http://p"}),
        ({"PIP_PROXY": "http://p", "https_proxy": "http://q"}, {"HTTP_PROXY": "http://p"}),
        ({"PIP_CONSTRAINT": "c.txt"}, {}),  # left out on purpose
        ({"PIP_INDEX_URL": "https://a", "UV_INDEX_URL": "https://mine"}, {}),
        ({"PIP_INDEX_URL": "https://a", "UV_FIND_LINKS": "mine"}, {}),
        (
            {"PIP_EXTRA_INDEX_URL": "https://a", "UV_INDEX_STRATEGY": "first-index"},
            {"UV_INDEX": "https://a"},
        ),
    ],
)
def test_variables(environ: dict[str, str], variables: dict[str, str], tmp_path: Path) -> None:
    assert uv_settings(environ, tmp_path) == IndexSettings(variables)


def test_no_index(tmp_path: Path) -> None:
    environ = {"PIP_NO_INDEX": "true", "PIP_INDEX_URL": "https://a", "PIP_FIND_LINKS": str(tmp_path)}
    assert uv_settings(environ, tmp_path) == IndexSettings({"UV_FIND_LINKS": str(tmp_path)}, ("--no-index",))


def test_local_places_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    there, gone = (tmp_path / "wheels").as_uri(), (tmp_path / "gone").as_uri()
    environ = {"PIP_EXTRA_INDEX_URL": f"{there} {gone}", "PIP_FIND_LINKS": f"~/wheels ~/gone {gone}"}
    settings = uv_settings(environ, tmp_path)
    assert settings.variables == {"UV_INDEX": there, "UV_FIND_LINKS": str(tmp_path / "wheels")} | BEST
    assert len(settings.notes) == 3
    assert all("left out" in note for note in settings.notes)


def test_files_and_their_precedence(tmp_path: Path) -> None:
    old, new = tmp_path / ".pip/pip.conf", tmp_path / ".config/pip/pip.conf"
    old.parent.mkdir()
    new.parent.mkdir(parents=True)
    old.write_text(
        "[global]\nindex-url = https://old\ncert = /old\n[install]\nfind_links =\n  https://one\n  https://two\n"
    )
    new.write_text("[global]\nindex-url = https://new\nfind-links = https://loses\n[list]\nindex-url = https://other\n")
    options = pip_options({"PIP_CERT": "/env"}, tmp_path)
    assert options["index-url"] == "https://new"
    assert options["cert"] == "/env"
    assert options["find-links"].split() == ["https://one", "https://two"]  # a section beats the global one
    assert uv_settings({}, tmp_path).variables["UV_FIND_LINKS"] == "https://one,https://two"


def test_a_damaged_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".pip").mkdir()
    (tmp_path / ".pip/pip.conf").write_text("index-url = no section\n")
    assert pip_options({}, tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "theirs"),
    [
        ('index-url = "https://mine"\n', True),
        ("[pip]\nno-index = true\n", True),
        ("offline = true\n", False),
        ("[", False),
    ],
)
def test_a_uv_file_of_the_user_wins(text: str, theirs: bool, tmp_path: Path) -> None:
    (tmp_path / ".config/uv").mkdir(parents=True)
    (tmp_path / ".config/uv/uv.toml").write_text(text)
    variables = uv_settings({"PIP_INDEX_URL": "https://a"}, tmp_path).variables
    assert variables == ({} if theirs else {"UV_DEFAULT_INDEX": "https://a"})


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("https://me:secret@host/simple", "https://***@host/simple"),
        ("https://token@host:80/simple x http://a:b@c", "https://***@host:80/simple x http://***@c"),
        ("https://host/a@b", "https://host/a@b"),
        ("engine@1.0", "engine@1.0"),
    ],
)
def test_credentials_are_never_shown(text: str, redacted: str) -> None:
    assert redact_url(text) == redacted
