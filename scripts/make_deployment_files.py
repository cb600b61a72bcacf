"""Write the generated files in deploy/, or check that they match their sources.

    python scripts/make_deployment_files.py            write the files
    python scripts/make_deployment_files.py --check    exit 1 and name each file that differs

The chart contains copies of the alert rules and of the dashboard, and a table of its values. The kustomize base is the
output of `helm template` with the default values.

This script needs helm, which scripts/install_test_programs.sh installs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).resolve().parents[1]
CHART = PROJECT / "deploy/helm/reconciler"
TEST_PROGRAMS = Path.home() / ".cache/reconciler-tests/bin"
# A helm that is built from source assumes Kubernetes 1.20.
RENDER = ("template", "reconciler", ".", "--skip-tests", "--kube-version", "1.32.0")
_TABLE = re.compile(r"(?<=<!-- values -->\n).*?(?=<!-- end of values -->)", re.DOTALL)
_GENERATED = "# scripts/make_deployment_files.py writes this file. Do not edit it.\n"


def render_chart(*options: str) -> str:
    """Return the manifests of the chart.

    Raises:
        subprocess.CalledProcessError: The values are invalid.
    """
    environment = {**os.environ, "PATH": f"{TEST_PROGRAMS}{os.pathsep}{os.environ['PATH']}"}
    process = subprocess.run(
        ["helm", *RENDER, *options], cwd=CHART, env=environment, check=True, text=True, stdout=subprocess.PIPE
    )
    return process.stdout


def read_manifest(manifests: str, name: str) -> str:
    """Return the text of the manifest with this name."""
    found = [part for part in manifests.split("---\n") if f"\n  name: {name}\n" in part]
    (manifest,) = found
    return f"---\n{manifest}"


def build_rendered_files() -> dict[str, str]:
    """Return the files that helm renders, by their path in deploy/."""
    base = render_chart()
    shard = read_manifest(render_chart("--set", "shards=2", "--show-only", "templates/shards.yaml"), "reconciler-2")
    return {
        "kustomize/base/reconciler.yaml": _GENERATED + base,
        "kustomize/overlays/sharded/shard-2.yaml": _GENERATED + shard,
    }


def build_copied_files() -> dict[str, str]:
    """Return the files that need no helm, by their path in deploy/."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    rows = ["| value | default | meaning |", "|---|---|---|", *_list_rows(schema, read_defaults())]
    table = "\n".join(["", *rows, "", ""])
    return {
        "helm/reconciler/files/rules.yaml": (PROJECT / "deploy/monitoring/rules.yaml").read_text(),
        "helm/reconciler/files/dashboard.json": (PROJECT / "deploy/monitoring/dashboard.json").read_text(),
        "helm/reconciler/README.md": _TABLE.sub(lambda _: table, (CHART / "README.md").read_text()),
    }


def read_defaults() -> dict[str, Any]:
    """Return the default values of the chart."""
    defaults: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return defaults


def _list_rows(schema: Mapping[str, Any], defaults: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, node in schema["properties"].items():
        # Helm adds the value `global` to the values of each chart.
        if name == "global":
            continue
        if "properties" in node:
            yield from _list_rows(node, defaults[name], f"{prefix}{name}.")
        else:
            default = json.dumps(defaults[name], ensure_ascii=False)
            allowed = ", ".join(f"`{value}`" for value in node.get("enum", ()))
            meaning = f"{node['description']} Allowed: {allowed}." if allowed else node["description"]
            yield f"| `{prefix}{name}` | `{default}` | {meaning} |"


def main(arguments: Sequence[str]) -> int:
    """Write the files, or compare them."""
    different = []
    for name, content in {**build_copied_files(), **build_rendered_files()}.items():
        file = PROJECT / "deploy" / name
        if "--check" not in arguments:
            file.parent.mkdir(exist_ok=True)
            file.write_text(content)
        elif not file.is_file() or file.read_text() != content:
            different.append(name)
    for name in different:
        print(f"deploy/{name} differs from its source: run python scripts/make_deployment_files.py", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
