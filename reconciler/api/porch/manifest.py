"""The fields that the kinds of Porch have in common: the API version and the metadata."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from reconciler.api.base import FieldIssue
from reconciler.api.field_types import check_text
from reconciler.api.manifest import Manifest, Metadata
from reconciler.krm.names import validate_dns_subdomain

PORCH_API_VERSION = "config.porch.kpt.dev/v1alpha1"


class PorchMetadata(Metadata):
    """Metadata of the object. Kubernetes defines its other fields."""

    name: Annotated[str, check_text(validate_dns_subdomain, "{path} is invalid")] = Field(
        "", description="Name of the object."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for an absent or empty name."""
        if data.get("name", "") == "":
            yield FieldIssue("{path} must not be empty", ("name",))


class PorchManifest(Manifest):
    """An object of Porch. Its name must be a DNS subdomain."""

    metadata: PorchMetadata = PorchMetadata()

    @classmethod
    def convert(cls, data: dict[str, Any], notify: Callable[[str, str], None]) -> dict[str, Any]:
        """Add an empty `metadata` and an empty `spec` if they are absent."""
        return {"metadata": {}, "spec": {}, **data}
