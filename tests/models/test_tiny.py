"""The bundled model: the same bytes everywhere, both forms equal, made whole or not at all."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engdiff.models.llama import LlamaShape
from engdiff.models.tensors import Tensor, interleave_halves, keep_rows, uniform
from engdiff.models.tiny import SHAPE, TinyModel, make_tiny

# A change here changes the model for everybody: raise RECIPE in engdiff/models/tiny.py as well.
DIGESTS = {
    "tiny-llama-1.gguf": "7ae4ba27e50326e468d69dbc241d884c7c0781be76e419ba0e2f78fe7d855547",
    "hf/config.json": "1f154e05f36ce8b534b1039ced04ca27b63fb8042e595914fbb3a5fef8c5c141",
    "hf/generation_config.json": "76038f044812f4a438a4c2bafdffb015cbd6018678a49233ca79a067606421c6",
    "hf/model.safetensors": "5d6c14411d3276d1a9be2793a67b00c563879093baf92300e7c3a6904d8b7cde",
    "hf/tokenizer.json": "e8a9d427e8a5d5fbb74794206c855c29e076e02f124eaaf58d83dd783ef970f4",
    "hf/tokenizer_config.json": "69a6ad8ceda91dd4a6a0ae9dc464f0e7196d28cf9771f5be91ec71bd8ece0659",
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return make_tiny(tmp_path_factory.mktemp("models"))


def digests(model: TinyModel) -> dict[str, str]:
    home = model.gguf.parent
    return {name: hashlib.sha256((home / name).read_bytes()).hexdigest() for name in DIGESTS}


def test_the_bytes_are_always_the_same(tiny: TinyModel) -> None:
    assert digests(tiny) == DIGESTS


def test_hash_randomisation_changes_nothing(tmp_path: Path) -> None:
    script = "import sys, pathlib; from engdiff.models.tiny import make_tiny; make_tiny(pathlib.Path(sys.argv[1]))"
    for seed in ("1", "2"):
        command = [sys.executable, "-c", script, str(tmp_path / seed)]
        subprocess.run(command, check=True, env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)})
        assert digests(make_tiny(tmp_path / seed)) == DIGESTS


def test_it_takes_about_a_second_at_most(tmp_path: Path) -> None:
    start = time.process_time()
    make_tiny(tmp_path)
    assert time.process_time() - start < 1.5


def test_it_needs_the_standard_library_only() -> None:
    script = "import sys, engdiff.models.tiny; print(*{name.split('.')[0] for name in sys.modules})"
    command = [sys.executable, "-S", "-c", script]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, check=True, capture_output=True, text=True, env={"PYTHONPATH": str(root)})
    loaded = set(run.stdout.split()) - {"engdiff", "__main__"}
    assert loaded <= sys.stdlib_module_names


def test_making_it_again_writes_nothing(tiny: TinyModel) -> None:
    before = {path: path.stat().st_mtime_ns for path in tiny.gguf.parent.rglob("*")}
    assert make_tiny(tiny.gguf.parent.parent) == tiny
    assert {path: path.stat().st_mtime_ns for path in tiny.gguf.parent.rglob("*")} == before


@pytest.mark.parametrize("damaged", [*DIGESTS, "sizes.json"])
@pytest.mark.parametrize("how", ["missing", "cut short"])
def test_a_half_made_one_is_remade(tmp_path: Path, damaged: str, how: str) -> None:
    model = make_tiny(tmp_path)
    path = model.gguf.parent / damaged
    data = path.read_bytes()
    path.unlink()
    if how == "cut short":
        path.write_bytes(data[:-7])
    assert digests(make_tiny(tmp_path)) == DIGESTS
    assert [entry.name for entry in tmp_path.iterdir()] == [model.gguf.parent.name], "no temporary folder is left"


def test_processes_may_make_it_at_the_same_time(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        models = pool.map(make_tiny, [tmp_path] * 6, chunksize=1)
    assert set(models) == {models[0]}
    assert digests(models[0]) == DIGESTS
    assert len(list(tmp_path.iterdir())) == 1


def test_nothing_is_left_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Path.write_bytes

    def write_bytes(path: Path, data: bytes) -> int:
        if path.name == "model.safetensors":
            raise OSError(28, "No space left on device")
        return written(path, data)

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    with pytest.raises(OSError, match="No space left"):
        make_tiny(tmp_path)
    monkeypatch.undo()
    assert not list(tmp_path.glob(".*")), "no temporary folder is left"
    assert digests(make_tiny(tmp_path)) == DIGESTS


def test_config_suits_every_transformers(tiny: TinyModel) -> None:
    config = json.loads((tiny.hf / "config.json").read_text())
    assert config["torch_dtype"] == "float16"
    assert config["rope_theta"] == SHAPE.rope_base
    assert config["tie_word_embeddings"] is False
    assert json.loads((tiny.hf / "tokenizer_config.json").read_text())["tokenizer_class"] == "PreTrainedTokenizerFast"


def test_token_ids_agree_across_files(tiny: TinyModel) -> None:
    config = json.loads((tiny.hf / "config.json").read_text())
    tokenizer = json.loads((tiny.hf / "tokenizer.json").read_text())
    names = json.loads((tiny.hf / "tokenizer_config.json").read_text())
    ids = tokenizer["model"]["vocab"]
    assert sorted(ids.values()) == list(range(config["vocab_size"]))
    assert ids[names["eos_token"]] == config["eos_token_id"]
    assert ids[names["pad_token"]] == config["pad_token_id"]
    assert {entry["content"]: entry["id"] for entry in tokenizer["added_tokens"]}.items() <= ids.items()


def test_kv_bytes_per_token() -> None:
    assert SHAPE.head_size == 32
    assert SHAPE.kv_bytes_per_token() == 2 * 4 * 2 * 32 * 2
    large = LlamaShape(128_256, 32, 4096, 32, 8, 14_336, 131_072, 1e-5, 500_000.0)
    assert large.kv_bytes_per_token() == 131_072, "Llama 3 8B takes 128 KiB a token"


def test_weights_have_the_deviation_asked_for() -> None:
    tensor = uniform("w", (64, 64), 0.25, seed=1)
    values = struct.unpack(f"<{64 * 64}e", tensor.data)
    assert abs(sum(values) / len(values)) < 0.02
    assert (sum(value * value for value in values) / len(values)) ** 0.5 == pytest.approx(0.25, rel=0.05)


def test_weights_depend_on_seed_and_name_only() -> None:
    assert uniform("a", (8, 8), 1.0, seed=1) == uniform("a", (8, 8), 1.0, seed=1)
    assert uniform("a", (8, 8), 1.0, seed=1).data != uniform("a", (8, 8), 1.0, seed=2).data
    assert uniform("a", (8, 8), 1.0, seed=1).data != uniform("b", (8, 8), 1.0, seed=1).data


def test_interleave_halves_pairs_each_row_with_the_one_half_a_head_later() -> None:
    rows = b"".join(struct.pack("<e", row) for row in range(8))  # two heads of four rows
    tensor = interleave_halves(Tensor("q", (8, 1), "F16", rows), heads=2)
    assert struct.unpack("<8e", tensor.data) == (0, 2, 1, 3, 4, 6, 5, 7)


def test_keep_rows_zeroes_the_others() -> None:
    tensor = keep_rows(Tensor("w", (3, 1), "F16", struct.pack("<3e", 1, 2, 3)), [0, 2])
    assert struct.unpack("<3e", tensor.data) == (1, 0, 3)


def test_a_tensor_with_the_wrong_size_is_refused() -> None:
    with pytest.raises(ValueError, match="w: 3 bytes"):
        Tensor("w", (2,), "F16", b"abc")
