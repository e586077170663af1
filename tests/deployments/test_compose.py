"""Services of docker compose in all their ways of writing."""

from __future__ import annotations

from pathlib import Path

from engdiff.deployments.containers import containers

TEXT = """
include: [other.yaml]
services:
  a:
    extends: {file: base.yaml, service: llm}
    build: .
    profiles: [gpu]
    entrypoint: ""
    command: ["--tag", "${TAG}", "--price", "$$5", 8000]
    environment:
      - HF_TOKEN
      - FROM_SHELL
      - A=b=c
      - T=${TAG}
    env_file:
      - .env
      - path: more.env
        required: false
  b:
    image: repo:${VERSION:-v1}
    environment: {HF_TOKEN: , N: 0.90, B: true}
"""


def test_compose(tmp_path: Path) -> None:
    path = tmp_path / "compose.yaml"
    path.write_text(TEXT)
    a, b = containers(path, {"FROM_SHELL": "yes"})
    assert (a.name, a.image, a.entrypoint, a.where, a.line) == ("a", "", (), "services.a", 4)
    assert a.arguments == ("--tag", "${TAG}", "--price", "$5", "8000")
    assert a.variables == {"FROM_SHELL": "yes", "A": "b=c"}
    assert set(a.unknown_variables) == {"HF_TOKEN", "T", "env_file .env", "env_file more.env"}
    notes = " | ".join(a.notes)
    for part in (
        "`extends` is not followed (base.yaml llm)",
        "profile gpu only",
        "`${TAG}` is kept",
        "Dockerfile",
        "include",
    ):
        assert part in notes
    assert (b.image, b.entrypoint, b.arguments) == ("repo:v1", None, ())
    assert b.variables == {"N": "0.90", "B": "true"}
    assert set(b.unknown_variables) == {"HF_TOKEN"}


def test_kubernetes_variables(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("""
kind: Pod
metadata: {name: p}
spec:
  containers:
  - image: i
    envFrom:
    - configMapRef: {name: cm}
    - secretRef: {name: s}
    env:
    - {name: A, value: a}
    - {name: B, value: "$(A)-$(LATER)-$$(A)"}
    - {name: LATER, value: "1"}
    - {name: K, valueFrom: {configMapKeyRef: {name: cm, key: k}}}
    - {name: URL, value: "http://$(K)"}
    - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
    - {name: A, value: last}
    - {name: NONE}
    args: ["$(A)", "$(NOPE)", "$(K)"]
""")
    (c,) = containers(path, {})
    assert c.name == "containers[0]"
    assert c.variables == {"B": "a-$(LATER)-$(A)", "LATER": "1", "A": "last", "NONE": ""}
    assert c.unknown_variables["K"] == "from configMap cm key k"
    assert c.unknown_variables["URL"] == "refers to K: from configMap cm key k"
    assert c.unknown_variables["CPU"] == "from the pod's resource limits.cpu"
    assert {"envFrom configMap cm", "envFrom secret s"} <= set(c.unknown_variables)
    assert (c.entrypoint, c.arguments) == (None, ("last", "$(NOPE)", "$(K)"))
    assert len(c.notes) == 2
