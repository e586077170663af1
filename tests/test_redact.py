"""Secrets: what must go, and what must stay."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.redact import REDACTED, is_secret_name, redact_text, redact_tree, redact_variables, redact_words

SECRET = "Ab12Cd34Ef56Gh78Ij90"

SECRET_NAMES = (
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "VLLM_API_KEY",
    "OPENAI_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "DB_PASSWORD",
    "PASSWD",
    "--api-key",
    "--hf-token",
    "-hft",
    "api_key",
    "api_keys",
    "apikey",
    "hf_token",
    "token",
    "client.secret",
    "credentials",
    "Authorization",
    "private-key",
    "passphrase",
)
HARMLESS_NAMES = (
    "",
    "--",
    "eos_token",
    "bos_token",
    "eos_token_id",
    "pad_token_id",
    "image_token",
    "stop_token",
    "max_num_batched_tokens",
    "--max-num-tokens",
    "tokens",
    "max_tokens",
    "tokenizer",
    "--tokenizer-mode",
    "token_to_kv_pool",
    "hash",
    "prefix_caching_hash_algo",
    "allow_credentials",
    "key",
    "keys",
    "HF_HOME",
    "secretary",
    "cache_type_k",
)


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)
    if name.strip("-"):
        assert is_secret_name(name.upper())


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_names_without_secrets(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("HF_TOKEN={}", "HF_TOKEN=[redacted]"),
        ("export VLLM_API_KEY={}; vllm serve", "export VLLM_API_KEY=[redacted]; vllm serve"),
        ("--api-key={} --port 1", "--api-key=[redacted] --port 1"),
        ("--api-key {} --port 1", "--api-key [redacted] --port 1"),
        ("vllm serve m --hf-token {}", "vllm serve m --hf-token [redacted]"),
        ("https://user:{}@host/simple", "https://[redacted]@host/simple"),
        ("git+https://{}@github.com/a/b", "git+https://[redacted]@github.com/a/b"),
        ("https://host/file?token={}&x=1", "https://host/file?token=[redacted]&x=1"),
        ("https://host/file?a=1&signature={}", "https://host/file?a=1&signature=[redacted]"),
        ("Authorization: Bearer {}", "Authorization: Bearer [redacted]"),
        ("sent bearer {}, refused", "sent bearer [redacted], refused"),
        ("Authorization: Basic {}==", "Authorization: Basic [redacted]"),
        ("got hf_{} here", "got [redacted] here"),
        ("got sk-{}.", "got [redacted]."),
        ("ghp_{}", "[redacted]"),
        ("AKIA" + "A1" * 8, "[redacted]"),
        ("server_args(api_key='{}', port=1)", "server_args(api_key=[redacted], port=1)"),
        ('{{"api_key": "{}", "port": 1}}', '{{"api_key": [redacted], "port": 1}}'),
        ("api_key=['{}', 'other']", "api_key=[redacted]"),
        ("Namespace(api_key=['{}'], model='m')", "Namespace(api_key=[redacted], model='m')"),
        ("password: {}", "password: [redacted]"),
    ],
)
def test_secrets_in_text(text: str, clean: str) -> None:
    dirty = text.format(SECRET)
    assert redact_text(dirty) == clean.format()
    assert SECRET not in redact_text(dirty)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "max_num_batched_tokens=8192, max_num_seqs=256",
        "--max-num-tokens 5 --max-num-batched-tokens 2048",
        "'eos_token_id': 445, 'bos_token': '<|endoftext|>'",
        "print_info: EOS token        = 445 '<|im_end|>'",
        "tokenizer='/models/tiny', tokenizer_mode=auto, tokenizer_revision=None",
        "GPU KV cache size: 16,384 tokens",
        "prefix_caching_hash_algo=sha256",
        "hash: 0f343b0931126a20f133d67c2b018a3b",
        "api_key=None, ssl_keyfile=None",
        "no API key is set and CORS allows all origins",
        "https://github.com/ggml-org/llama.cpp/pull/25655",
        "http://127.0.0.1:8000/v1/models?limit=1",
        "mail me@example.org about it",
        "git@github.com:a/b.git",
        "tokens: 5",
        "sk-short hf_short",
        "tensor 'token_embd.weight' (f16)",
        "Loading weights took 1.25 seconds",
    ],
)
def test_what_stays(text: str) -> None:
    assert redact_text(text) == text
    assert redact_tree({"a": [text]}) == {"a": [text]}


@pytest.mark.parametrize(
    ("words", "clean"),
    [
        (["--api-key", SECRET, "--port", "1"], ["--api-key", REDACTED, "--port", "1"]),
        (["--api-key", SECRET, SECRET, "-x"], ["--api-key", REDACTED, REDACTED, "-x"]),
        ([f"--api-key={SECRET}"], [f"--api-key={REDACTED}"]),
        (["--api-key", f"-{SECRET}"], ["--api-key", REDACTED]),
        (["-hft", SECRET], ["-hft", REDACTED]),
        (["--hf-token", "--port", "1"], ["--hf-token", "--port", "1"]),
        (["--max-num-tokens", "5"], ["--max-num-tokens", "5"]),
        (["--max-num-batched-tokens=8192"], ["--max-num-batched-tokens=8192"]),
        (["--tokenizer", "org/name", "--eos-token-id", "3"], ["--tokenizer", "org/name", "--eos-token-id", "3"]),
        (["--download", f"https://u:{SECRET}@h/x"], ["--download", f"https://{REDACTED}@h/x"]),
        (["--api-key"], ["--api-key"]),
        ([], []),
    ],
)
def test_words(words: list[str], clean: list[str]) -> None:
    assert redact_words(words) == tuple(clean)


def test_variables_keep_their_names() -> None:
    variables = {
        "HF_TOKEN": SECRET,
        "VLLM_API_KEY": "",
        "PIP_INDEX_URL": f"https://u:{SECRET}@h/s",
        "OMP_NUM_THREADS": "2",
    }
    assert redact_variables(variables) == {
        "HF_TOKEN": REDACTED,
        "VLLM_API_KEY": "",
        "PIP_INDEX_URL": f"https://{REDACTED}@h/s",
        "OMP_NUM_THREADS": "2",
    }


def test_tree() -> None:
    tree: dict[str, Any] = {
        "explicit": {"api_key": [SECRET], "hf_token": SECRET, "max_num_batched_tokens": 8192, "password": 1234},
        "flags": {"api_key": {"names": ["--api-key"], "default": None}, "eos_token_id": {"default": 2}},
        "empty": {"api_key": None, "hf_token": "None", "secret": [], "password": ""},
        "log": ["Bearer " + SECRET, 5, None, True],
    }
    assert redact_tree(tree) == {
        "explicit": {"api_key": REDACTED, "hf_token": REDACTED, "max_num_batched_tokens": 8192, "password": REDACTED},
        "flags": {"api_key": {"names": ["--api-key"], "default": None}, "eos_token_id": {"default": 2}},
        "empty": {"api_key": None, "hf_token": "None", "secret": [], "password": ""},
        "log": ["Bearer " + REDACTED, 5, None, True],
    }


# --- properties -------------------------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    ["api_key", "=", ": ", " ", "'", '"', "--api-key", "https://", "@", "user:", "Bearer ", "hf_", SECRET, "[", "]",
     "?token=", "&", "Authorization: ", "Basic ", "password", "\n", "sk-", "None", ",", ")", REDACTED, "a", "/", "-"]
)  # fmt: skip
TEXTS = st.lists(_PIECES, max_size=12).map("".join) | st.text(max_size=40)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(SECRET_NAMES) | TEXTS, inner, max_size=3)
    ),
    max_leaves=10,
)


@given(TEXTS)
def test_property_redacting_text_twice_is_redacting_it_once(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once


@given(TREES)
def test_property_redacting_a_tree_twice_is_redacting_it_once(tree: Any) -> None:
    once = redact_tree(tree)
    assert redact_tree(once) == once


@given(st.lists(TEXTS | st.sampled_from(["--api-key", "--port", "-hft", f"--api-key={SECRET}"]), max_size=6))
def test_property_words_stay_as_many_and_redact_once(words: list[str]) -> None:
    once = redact_words(words)
    assert len(once) == len(words)
    assert redact_words(once) == once


@given(
    name=st.sampled_from(SECRET_NAMES),
    secret=st.text(min_size=1).map(lambda s: f"{SECRET}{s}"),
    path=st.lists(st.sampled_from(["a", "config", "0"]), max_size=3),
    several=st.booleans(),
)
def test_property_a_secret_under_its_name_never_survives(
    name: str, secret: str, path: list[str], several: bool
) -> None:
    tree: Any = {name: [secret] if several else secret}
    for key in path:
        tree = {key: [tree]}
    assert SECRET not in json.dumps(redact_tree(tree))
    assert SECRET not in "".join(redact_variables({name.strip("-"): secret}).values())
    assert SECRET not in "".join(redact_words([f"--{name.strip('-')}", secret]))
    assert SECRET not in "".join(redact_words([f"--{name.strip('-')}={secret}"]))
