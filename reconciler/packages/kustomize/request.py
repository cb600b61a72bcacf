"""The inputs of the build of a Kustomize overlay."""

from __future__ import annotations

import json
from typing import Any, Final

from reconciler.krm.json_text import encode_canonical_json
from reconciler.lazy_dataclasses import asdict, dataclass
from reconciler.packages.charts.request import ChartRequest

SOURCE_FOLDER: Final = "source"
"""The folder that contains the files of the upstream package during a build."""


@dataclass(frozen=True)
class KustomizeRequest:
    """All inputs of a build except the files of the upstream package and the program.

    Attributes:
        path: The normalized path of the folder that is built, relative to the upstream package. "" is the package.
        options: The fields of the generated kustomization.yaml, as canonical JSON text. "{}" if no file is generated.
        components: The normalized paths of components, relative to the upstream package.
        allowed_secrets: Secrets with values that are allowed in the output, as "Kind/name".
        charts: For charts in the overlay: the capabilities of the cluster and the rules for the output. All other
            inputs of these charts are in the overlay itself. If `charts` is None, an overlay with charts is refused.
    """

    path: str = ""
    options: str = "{}"
    components: tuple[str, ...] = ()
    allowed_secrets: tuple[str, ...] = ()
    charts: ChartRequest | None = None

    @property
    def label(self) -> str:
        """The overlay for messages."""
        return f"the overlay {self.path}" if self.path else "the overlay"

    @property
    def key(self) -> dict[str, Any]:
        """All fields that the output depends on."""
        fields = asdict(self)
        del fields["charts"]
        return {**fields, "charts": self.charts.key} if self.charts else fields

    @property
    def has_generated_file(self) -> bool:
        """Whether a generated kustomization.yaml changes the resources of the overlay."""
        return self.options != "{}" or bool(self.components)

    def build_file(self) -> bytes:
        """Return the content of the generated kustomization.yaml, which is beside the folder `source`."""
        fields = json.loads(self.options)
        if self.components:
            fields["components"] = [join_source(path) for path in self.components]
        data = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            **fields,
            "resources": [join_source(self.path)],
        }
        # Kustomize reads JSON, which is a subset of YAML.
        return encode_canonical_json(data)


def join_source(path: str) -> str:
    """Return the path of a folder of the upstream package during a build."""
    return f"{SOURCE_FOLDER}/{path}" if path else SOURCE_FOLDER
