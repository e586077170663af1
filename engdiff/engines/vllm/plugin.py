"""The probe as a plugin that vLLM finds on the path of its interpreter."""

from __future__ import annotations

from engdiff.engines.site_hook import KIT, kit_source, source

PLUGIN = "engdiff_probe"
MODULE = "engdiff_vllm_probe"
PACKAGE = "engdiff.engines.vllm"
INFO = f"{PLUGIN}-0.dist-info"


def plugin_files() -> dict[str, str]:
    """The probe as a package that needs no installation: modules beside their ``.dist-info``."""
    return {
        KIT: kit_source(),
        f"{MODULE}.py": source(PACKAGE, "probe.py"),
        f"{INFO}/METADATA": f"Metadata-Version: 2.1\nName: {PLUGIN}\nVersion: 0\n",
        f"{INFO}/entry_points.txt": f"[vllm.general_plugins]\n{PLUGIN} = {MODULE}:register\n",
    }
