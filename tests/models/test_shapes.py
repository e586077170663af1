"""The shipped shapes: found by any of their names, right by arithmetic, and made into folders that engines can read."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from engdiff.errors import UsageError
from engdiff.models.shapes import Shape, local_config, make_shape, shape, shapes
from tests.models.parameter_count import parts

ROOT = Path(__file__).parents[2]

KEYS = tuple(shapes())

WITH_SCALES = {"deepseek-v3", "deepseek-r1"}
"""The hub counts the scales of FP8 blocks as parameters of these repositories, and leaves them out of others."""

UNEXPLAINED = {"kimi-k2": 3416}
"""Parameters that the hub counts and that the configuration does not explain."""


def known(name: str) -> Shape:
    found = shape(name)
    assert found is not None
    return found


def test_the_models_that_people_compare_with_are_there() -> None:
    wanted = """
        llama-3.1-8b llama-3.1-70b llama-3.1-405b llama-4-scout qwen2.5-7b qwen2.5-72b qwen3-8b qwen3-32b qwen3-30b-a3b
        qwen3-235b-a22b qwen3-next-80b-a3b mistral-7b mixtral-8x7b deepseek-v3 deepseek-r1 deepseek-v3.2 gemma-2-9b
        gemma-3-27b gpt-oss-20b gpt-oss-120b nemotron-h-8b glm-4.5 glm-4.5-air kimi-k2 minimax-m2 phi-4
    """
    assert set(wanted.split()) <= set(KEYS)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("8b", "llama-3.1-8b"),
        ("70B", "llama-3.1-70b"),
        ("405b", "llama-3.1-405b"),
        ("r1", "deepseek-r1"),
        ("v3", "deepseek-v3"),
        ("Llama-3.1-8B", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("qwen/qwen3-30b-a3b", "qwen3-30b-a3b"),
    ],
)
def test_a_shape_is_found_by_key_alias_and_hub_id_in_any_case(name: str, key: str) -> None:
    assert known(name).key == key


def test_an_unknown_name_has_no_shape() -> None:
    assert shape("llama-5-1t") is None


def test_no_name_means_two_models() -> None:
    names = Counter(name for each in shapes().values() for name in {each.key, each.hub_id.lower(), *each.aliases})
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("key", KEYS)
def test_a_shape_says_what_it_must(key: str) -> None:
    each = shapes()[key]
    assert key == key.lower()
    assert each.aliases == tuple(alias.lower() for alias in each.aliases)
    assert each.kind in {"dense", "moe", "mla-moe", "hybrid", "hybrid-moe"}
    assert each.title
    assert each.licence
    assert {"config", "parameters"} <= set(each.sources)
    assert all(urlsplit(url).scheme == "https" and each.hub_id in url for url in each.sources.values())
    assert {"architectures", "model_type"} <= set(each.config)
    assert each.context is not None


# --- arithmetic -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
def test_the_configuration_gives_the_published_number_of_parameters(key: str) -> None:
    each = shapes()[key]
    counted = parts(each.config)
    if key not in WITH_SCALES:
        counted.pop("scales", None)
    assert sum(counted.values()) + UNEXPLAINED.get(key, 0) == each.parameters


@pytest.mark.parametrize("key", KEYS)
def test_the_notes_name_every_part_that_is_no_language_model(key: str) -> None:
    each = shapes()[key]
    said = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\d", each.notes)}
    assert {size for name, size in parts(each.config).items() if name != "model"} <= said


@pytest.mark.parametrize(
    ("key", "tensor_parallel", "value_bytes", "expected"),
    [
        # What real startup logs say, in bytes of a token on one GPU (shared cases log-002, -069, -078, -118; the last
        # is a Kimi K2 Thinking, which has the attention of Kimi K2).
        ("qwen3-235b-a22b", 4, 2, 48_128),
        ("llama-3.1-70b", 4, 2, 81_920),
        ("qwen3-30b-a3b", 1, 2, 98_304),
        ("kimi-k2", 8, 2, 70_272),
    ],
)
def test_the_configuration_gives_the_bytes_of_a_cached_token(
    key: str, tensor_parallel: int, value_bytes: int, expected: int
) -> None:
    assert cached_token(known(key), tensor_parallel, value_bytes) == expected


def test_the_sparse_attention_of_deepseek_caches_a_packed_latent_and_an_index() -> None:
    """In FP8: 512 values, 4 scales of 4 bytes, 64 rotary values in bfloat16; 128 values and a scale (case log-121)."""
    config = known("deepseek-v3.2").config
    latent = config["kv_lora_rank"] + config["kv_lora_rank"] // 128 * 4 + 2 * config["qk_rope_head_dim"]
    index = config["index_head_dim"] + config["index_head_dim"] // 128 * 4
    assert config["num_hidden_layers"] * (latent + index) == 48_068


def cached_token(each: Shape, tensor_parallel: int, value_bytes: int) -> int:
    """Bytes on one GPU, in every layer: keys and values of its heads, or the latent, which each GPU holds whole."""
    config = each.config
    if "kv_lora_rank" in config:
        return int(config["num_hidden_layers"] * (config["kv_lora_rank"] + config["qk_rope_head_dim"]) * value_bytes)
    size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    heads = max(1, config["num_key_value_heads"] // tensor_parallel)
    return int(config["num_hidden_layers"] * 2 * heads * size * value_bytes)


@pytest.mark.parametrize(
    ("key", "full", "others"),
    [("gpt-oss-20b", 12, 12), ("gpt-oss-120b", 18, 18)],
)
def test_layer_types_cover_the_layers(key: str, full: int, others: int) -> None:
    assert Counter(known(key).config["layer_types"]) == {"full_attention": full, "sliding_attention": others}


@pytest.mark.parametrize("key", ["nemotron-h-8b", "nemotron-h-56b"])
def test_a_hybrid_pattern_covers_the_layers(key: str) -> None:
    config = known(key).config
    assert len(config["hybrid_override_pattern"]) == config["num_hidden_layers"]


# --- folders ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
def test_a_folder_holds_the_configuration_and_a_tokenizer(key: str, tmp_path: Path) -> None:
    each = shapes()[key]
    made = make_shape(each, tmp_path)
    assert made == tmp_path / key
    assert {file.name for file in made.iterdir()} == {
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert json.loads((made / "config.json").read_text()) == each.config
    assert json.loads((made / "tokenizer_config.json").read_text())["model_max_length"] == each.context


def test_a_folder_that_is_current_is_left_alone(tmp_path: Path) -> None:
    made = make_shape(known("8b"), tmp_path)
    before = {file: file.stat().st_ino for file in made.iterdir()}
    make_shape(known("8b"), tmp_path)
    assert {file: file.stat().st_ino for file in made.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == [made.name]


def test_a_folder_that_is_not_current_is_made_again(tmp_path: Path) -> None:
    made = make_shape(known("8b"), tmp_path)
    (made / "config.json").write_text("{}")
    (made / "tokenizer.json").unlink()
    make_shape(known("8b"), tmp_path)
    assert json.loads((made / "config.json").read_text()) == known("8b").config
    assert (made / "tokenizer.json").exists()


# --- what the user has ------------------------------------------------------------------------------------------


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder with a ``config.json`` alone, written as no reader of JSON would write it again."""
    home = tmp_path / "mine"
    home.mkdir()
    (home / "config.json").write_text('{"model_type":"llama",  "max_position_embeddings": 99, "limit": Infinity}')
    return home


@pytest.mark.parametrize("given", ["", "config.json"])
def test_a_bare_configuration_gets_a_tokenizer_elsewhere(given: str, bare: Path, tmp_path: Path) -> None:
    made = local_config(bare / given, tmp_path / "cache")
    assert made.parent == tmp_path / "cache"
    assert made.name.startswith("mine-")
    assert (made / "config.json").read_bytes() == (bare / "config.json").read_bytes()
    assert json.loads((made / "tokenizer_config.json").read_text())["model_max_length"] == 99
    assert [file.name for file in bare.iterdir()] == ["config.json"]
    assert local_config(bare / given, tmp_path / "cache") == made


def test_a_configuration_of_another_name_is_one_too(bare: Path, tmp_path: Path) -> None:
    (bare / "tokenizer.json").write_text("{}")
    (bare / "other.json").write_text('{"model_type": "llama"}')
    made = local_config(bare / "other.json", tmp_path / "cache")
    assert json.loads((made / "config.json").read_text()) == {"model_type": "llama"}
    assert "model_max_length" not in json.loads((made / "tokenizer_config.json").read_text())


@pytest.mark.parametrize("given", ["", "config.json"])
def test_a_model_folder_is_taken_as_it_is(given: str, bare: Path, tmp_path: Path) -> None:
    (bare / "tokenizer.json").write_text("{}")
    assert local_config(bare / given, tmp_path / "cache") == bare
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), ("{", "not JSON"), ("[]", "not a model's"), ('{"a": 1}', "not a model's")],
)
def test_what_is_no_configuration_is_refused(content: str | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(UsageError, match=message):
        local_config(tmp_path, tmp_path / "cache")


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    made = tmp_path / "models.md"
    subprocess.run([sys.executable, "scripts/models_page.py", str(made)], cwd=ROOT, check=True)
    kept = (ROOT / "docs/models.md").read_text(encoding="utf-8")
    assert made.read_text(encoding="utf-8") == kept, "run scripts/models_page.py docs/models.md"
