"""The reader of charts and artifacts with the settings group `sources`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from reconciler.bootstrap.sources import build_artifacts
from reconciler.packages.artifacts import SourceProblem, VersionList
from reconciler.settings import Settings
from reconciler.settings.sources import SourceSettings
from tests.support.archives import pack_chart
from tests.support.artifact_servers import ArtifactServer, helm_repository, serve


@pytest.fixture
def charts() -> Iterator[ArtifactServer]:
    with serve(ArtifactServer()) as server:
        server.add_chart("web", "1.0.0", pack_chart("web", "1.0.0"))
        yield server


def list_versions(folder: Path, charts: ArtifactServer, is_offline: bool = False, **sources: Any) -> str:
    """Return the code of the problem. Return "" if there is none."""
    settings = Settings(cache=str(folder), sources=SourceSettings(**sources))
    artifacts = build_artifacts(settings, is_offline=is_offline)
    result = artifacts.list_versions(helm_repository(charts), "web")
    artifacts.close()
    return result.code if isinstance(result, SourceProblem) else ""


def test_settings_apply(tmp_path: Path, charts: ArtifactServer) -> None:
    assert list_versions(tmp_path, charts, is_offline=True) == "NotInCache"
    assert list_versions(tmp_path, charts, allowed_urls=["https://charts.example.com"]) == "SourceAddressRefused"
    assert list_versions(tmp_path, charts, limits={"index_bytes": 1_024}) == ""
    charts.add_chart("web", "1.1.0", b"", description="x" * 1_024)
    assert list_versions(tmp_path / "other", charts, limits={"index_bytes": 1_024}) == "SourceTooLarge"
    charts.login = ("reader", "password-of-the-reader")
    assert list_versions(tmp_path / "third", charts) == "SourceUnauthorized"
    (tmp_path / "credentials").write_text(f"http://reader:password-of-the-reader@{charts.host}\n")
    assert list_versions(tmp_path / "third", charts, credentials_file=str(tmp_path / "credentials")) == ""


def test_mirror_applies(tmp_path: Path, charts: ArtifactServer) -> None:
    mirrors = [{"prefix": "https://charts.example.com/", "url": charts.url}]
    artifacts = build_artifacts(Settings(cache=str(tmp_path), sources=SourceSettings(mirrors=mirrors)))  # type: ignore[arg-type]
    repository = helm_repository(charts, url="https://charts.example.com/charts")
    assert isinstance(artifacts.list_versions(repository, "web"), VersionList)
    artifacts.close()


def test_proxy_applies(tmp_path: Path, charts: ArtifactServer) -> None:
    """The server of the test is the proxy. It receives the whole URL."""
    sources = SourceSettings(proxy=charts.url, insecure_hosts=("charts.example.com",))
    artifacts = build_artifacts(Settings(cache=str(tmp_path), sources=sources))
    repository = helm_repository(charts, url="http://charts.example.com/charts")
    assert isinstance(artifacts.list_versions(repository, "web"), VersionList)
    assert charts.paths == ["GET http://charts.example.com/charts/index.yaml"]
    assert isinstance(artifacts.list_versions(helm_repository(charts), "web"), VersionList)
    assert charts.paths == ["GET /charts/index.yaml"]
    refused = artifacts.list_versions(helm_repository(charts, url="https://169.254.169.254/charts"), "web")
    assert isinstance(refused, SourceProblem)
    assert refused.code == "SourceAddressRefused"
    assert charts.paths == []
    artifacts.close()


def test_cache_has_its_size_limit(tmp_path: Path, charts: ArtifactServer) -> None:
    settings = Settings(cache=str(tmp_path), sources=SourceSettings(cache_bytes=0))
    artifacts = build_artifacts(settings)
    versions = artifacts.list_versions(helm_repository(charts), "web")
    assert isinstance(versions, VersionList)
    artifacts.read(helm_repository(charts), "web", versions.versions[0])
    artifacts.evict({versions.versions[0].digest})
    assert len(list((tmp_path / "sources/sha256").iterdir())) == 1
    artifacts.evict(())
    assert len(list((tmp_path / "sources/sha256").iterdir())) == 0
    artifacts.close()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param({"insecure_hosts": ["http://a.example"]}, "hosts such as", id="url-as-host"),
        pytest.param({"allowed_urls": ["https://user:pass@a.example"]}, "CredentialInUrl", id="credentials"),
        pytest.param({"poll_seconds": -1}, "greater than or equal to 0", id="poll"),
        pytest.param({"proxy": "proxy.example.com:3128"}, "must be a URL such as", id="proxy"),
        pytest.param({"mirrors": [{"prefix": "oci://a", "url": "https://b"}]}, "two oci:// URLs", id="mirror-schemes"),
        pytest.param({"mirrors": [{"prefix": "a.example", "url": "b.example"}]}, "two oci:// URLs", id="mirror-hosts"),
        pytest.param({"limits": {"compression_ratio": 1}}, "greater than or equal to 2", id="ratio"),
    ],
)
def test_invalid_settings(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SourceSettings.model_validate(data)
