"""Whatever the file is, one clear error or its text."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engdiff.deployments.containers import containers
from engdiff.deployments.yaml_file import MAX_BYTES, load
from engdiff.errors import DeploymentIsTemplate, DeploymentUnreadable, EngdiffError
from tests.deployments.reading import DATA, chosen

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
MERGE_BOMB = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)

POD = "kind: Pod\nspec:\n  containers:\n"

REFUSED: tuple[tuple[str, str | bytes, str, str], ...] = (
    ("alias bomb", BOMB, "more than 100000 values", "smaller"),
    ("merge bomb", MERGE_BOMB, "more than 100000 values", "smaller"),
    ("alias of itself", "a: &a [*a]", "line 1: an alias that contains itself", ""),
    ("unknown alias", "a: *b", "line 1: found undefined alias", ""),
    ("deep", "a: " + "[" * 5000, "line 1: nested deeper than 100", ""),
    ("deep block", "\n".join(" " * n + "a:" for n in range(500)), "nested deeper than 100", ""),
    ("latin-1", b"a: 1\nb: \xe9\n", "line 2: not UTF-8", "UTF-8"),
    ("utf-16", "a: 1".encode("utf-16"), "not UTF-8", "UTF-8"),
    ("tab", "a:\n\tb: 1\n", "line 2: found character '\\t'", ""),
    ("duplicate", "services:\n  a: {}\n  a: {}\n", "line 3: key `a` again; it is on line 2 already", "one of them"),
    ("list", "- a\n", "line 1: a list, where", ""),
    ("text", "hello\n", "line 1: plain text, where", ""),
    ("object", "a: !!python/object/apply:os.system [ls]\n", "line 1: the tag `python/object/apply:", "remove"),
    ("python name", "a: !!python/name:os.system ''\n", "line 1: the tag", "remove"),
    ("empty", "", "the file is empty", ""),
    ("only comments", "# a\n---\n# b\n", "the file is empty", ""),
    ("nul", 'a: "\\0"', "line 1: a NUL character", ""),
    ("control", b"a: 1\nb: \x01\n", "line 2: a character that YAML does not allow", ""),
    ("too large a character", 'a: "\\UFFFFFFFF"', "not YAML", ""),
    ("key of a list", "[a]: b", "line 1: a key that is itself", "quote"),
    ("merge of text", "a: {<<: x}", "line 1: `<<` merges mappings only", ""),
    ("unclosed", "a: 'x\n", "line", ""),
    ("large", b"#" * (MAX_BYTES + 1), "larger than 5 MB", "one deployment"),
    ("many", "a: [" + "1," * 150_000 + "]", "more than 100000 values", ""),
    ("neither", "a: 1", "neither docker compose nor", "services"),
    ("no containers", "kind: Service\nspec: {}", "neither docker compose nor", "containers"),
    ("command is text", f"{POD}    - command: vllm serve", "line 4: `command` must", "[\"vllm\""),
    ("word is a mapping", f"{POD}    - args: [--a, {{b: 1}}]", "line 4: `args` holds", "quote"),
    ("service is text", "services:\n  a: b", "line 2: `a` must be a mapping", ""),
    ("services is a list", "services: [a]", "line 1: `services` must be a mapping", ""),
    ("unclosed quote", "services:\n  a:\n    command: 'x \"y'", "line 3: `command` cannot be split", "quote"),
    ("env without name", f"{POD}    - env:\n      - value: 1", "line 5: an item of `env`", "name"),
    ("env bomb", "kind: Pod\nspec:\n containers:\n - env:\n" + "".join(
        f"   - {{name: A{n}, value: '{f'$(A{n - 1})' * 10 if n else 'x' * 10}'}}\n" for n in range(12)),
     "longer than Linux takes", ""),
)  # fmt: skip


@pytest.mark.parametrize(("content", "message", "advice"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_refused(tmp_path: Path, content: str | bytes, message: str, advice: str) -> None:
    path = tmp_path / "d.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    began = time.monotonic()
    with pytest.raises(DeploymentUnreadable) as raised:
        containers(path, {})
    assert time.monotonic() - began < 60
    assert str(path) in raised.value.message
    assert message in raised.value.message
    assert raised.value.advice
    assert advice in raised.value.advice
    assert "\n" not in raised.value.message + raised.value.advice


TEMPLATES = (
    "kind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n",
    'kind: Deployment\nmetadata:\n  name: "{{ .Release.Name }}"\n',
    "{{- if .Values.enabled }}\nkind: Deployment\n{{- end }}\n",
    "kind: Deployment\nimage: {{ vllm_image }}\n",
    "kind: Deployment\nspec:\n  {{- toYaml .Values.spec | nindent 2 }}\n",
)


@pytest.mark.parametrize("text", TEMPLATES)
def test_a_template_is_to_be_rendered_first(tmp_path: Path, text: str) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(text)
    with pytest.raises(DeploymentIsTemplate) as raised:
        containers(path, {})
    assert "helm template" in raised.value.advice


def test_a_chat_template_is_no_helm_template(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("# {{ .Values.x }}\nservices: {a: {image: x, command: [--chat-template, '{{ messages[0] }}']}}")
    assert containers(path, {})[0].arguments == ("--chat-template", "{{ messages[0] }}")


def test_missing_and_folder(tmp_path: Path) -> None:
    with pytest.raises(DeploymentUnreadable, match="no such file"):
        containers(tmp_path / "nope.yaml", {})
    with pytest.raises(DeploymentUnreadable, match="cannot be read"):
        containers(tmp_path, {})


def test_scalars_stay_text_and_tags_of_compose_are_known(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("\ufeffa: [0.90, 012, yes, ~, 1e3, 2026-01-01]\nb: !reset [1]\nc: !override {d: 1}\ne: !custom x\n")
    (block,) = load(path)
    assert block == {"a": ["0.90", "012", "yes", None, "1e3", "2026-01-01"], "b": None, "c": {"d": "1"}, "e": "x"}
    assert block.lines["c"] == 3


def test_a_secret_in_a_key_is_not_told(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("hf_abcdefghijklmnopqrstuvwx: 1\nhf_abcdefghijklmnopqrstuvwx: 2\n")
    with pytest.raises(DeploymentUnreadable) as raised:
        containers(path, {})
    assert "abcdefghijkl" not in raised.value.message


TEXT = """services:\n|  a:\n|    image: |vllm/vllm-openai:v1.0.0|    command: |kind: Pod\n|spec:\n|  containers:\n
|  - name: c\n|    args: [|]\n|sh|, |-c|"|'|$(|${|}|)|\\|if x; then |fi|<<|&a |*a|!!|{|: |\n|\t|- |---\n|for x in |`
|vllm serve M |environment: |env: |A=|$A|&&|(|case x in |exec |env |#|\\n|!reset |<<: """

YAML = st.lists(st.sampled_from(TEXT.split("|")) | st.text(max_size=5), max_size=40).map("".join)


def read_or_refuse(path: Path) -> None:
    """Read the file as the command line does; only errors meant for users may come out."""
    try:
        chosen(path)
    except EngdiffError as error:
        message = error.message
    else:
        return
    assert "\n" not in message


@given(YAML | st.text() | st.binary())
@example("services: {a: {entrypoint: [sh, -c, 'x=(1 2) )( > (']}}")
def test_property_no_text_raises_anything_else(tmp_path_factory: pytest.TempPathFactory, text: str | bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "property.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    read_or_refuse(path)


@given(st.integers(0, 2**32))
def test_property_damaged_files(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    data = bytearray(chance.choice(sorted(DATA.glob("*.yaml"))).read_bytes())
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(data))
        data[at : at + chance.randint(0, 4)] = bytes(chance.choices(b"{}[]'\"$()&*!|>-:#\\`\n\t ;x\xff\x00", k=2))
    path = tmp_path_factory.getbasetemp() / "damaged.yaml"
    path.write_bytes(data)
    read_or_refuse(path)
