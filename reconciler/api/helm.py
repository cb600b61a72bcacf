"""Files of Helm charts: `Chart.yaml` and `Chart.lock`."""

from typing import ClassVar, Literal

from pydantic import ConfigDict, Field

from reconciler.api.base import ApiModel


class ChartSection(ApiModel):
    """A section of a file of a chart. Unknown fields are ignored, as in Helm."""

    model_config = ConfigDict(extra="ignore")
    is_open: ClassVar = True


class ChartDependency(ChartSection):
    """A chart that another chart contains or requires."""

    name: str = Field("", description="Name of the required chart.")
    version: str = Field("", description="Version or range of versions of the required chart.")
    repository: str = Field("", description="URL of the repository of the required chart.")
    alias: str = Field("", description="Name of the subchart if it differs from the name of the required chart.")


class ChartManifest(ChartSection):
    """The content of `Chart.yaml`."""

    api_version: str = Field("", description="Version of the chart format: v1 or v2.")
    name: str = Field("", description="Name of the chart.")
    version: str = Field("", description="Version of the chart.")
    type: Literal["", "application", "library"] = Field("", description="Type of the chart.")
    kube_version: str = Field("", description="Range of the Kubernetes versions that the chart supports.")
    app_version: str = Field("", description="Version of the application in the chart.")
    description: str = Field("", description="Description of the chart.")
    dependencies: tuple[ChartDependency, ...] = Field((), description="Charts that this chart requires.")


class ChartLock(ChartSection):
    """The content of `Chart.lock`."""

    dependencies: tuple[ChartDependency, ...] = Field((), description="Locked versions of the required charts.")
