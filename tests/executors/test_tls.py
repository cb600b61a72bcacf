"""A Dask cluster is reached over mutual TLS: certificates of another authority get no connection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.bootstrap.renderer_factory import SettingsRendererFactory
from reconciler.executors.dask_cluster import DaskExecutor
from reconciler.executors.executor import ExecutorUnusableError
from reconciler.settings import Settings
from tests.support.certificates import write_certificate

pytest.importorskip("distributed", reason="the extra `dask` is not installed")
dask = pytest.importorskip("dask")


def dask_settings(folder: Path, authority: str) -> dict[str, object]:
    """Return Dask settings with a certificate of an authority of this name, which is created."""
    certificate, key = map(str, write_certificate(folder, authority))
    tls = {"ca-file": certificate}
    tls |= {f"{role}.{part}": file for role in ("scheduler", "worker", "client")
            for part, file in (("cert", certificate), ("key", key))}  # fmt: skip
    return {f"distributed.comm.tls.{name}": file for name, file in tls.items()} | {
        "distributed.comm.require-encryption": True
    }


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """The address of a scheduler without workers whose certificate is of the authority `ours`."""
    import distributed

    with (
        dask.config.set(dask_settings(tmp_path, "ours")),
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address="127.0.0.1:0", protocol="tls", host="127.0.0.1",
            security=distributed.Security(), silence_logs=50,
        ) as cluster,
    ):  # fmt: skip
        yield cluster.scheduler_address


def test_a_certificate_of_the_same_authority_connects(scheduler: str) -> None:
    executor = DaskExecutor(scheduler, SettingsRendererFactory("{}", ""))
    executor.connection_error = "the last connection failed"
    client = executor._connect()

    assert (client.status, executor.connection_error) == ("running", "")
    client.close()


def test_a_certificate_of_another_authority_does_not(scheduler: str, tmp_path: Path) -> None:
    executor = DaskExecutor(scheduler, SettingsRendererFactory("{}", ""))
    with (
        dask.config.set(dask_settings(tmp_path, "theirs")),
        pytest.raises(ExecutorUnusableError, match="does not respond"),
    ):
        executor._connect()

    assert "does not respond" in executor.connection_error


@pytest.mark.parametrize(
    ("address", "accepted"),
    [
        pytest.param("tls://scheduler:8786", True, id="tls"),
        pytest.param("wss://scheduler:8786", True, id="web-socket-over-tls"),
        pytest.param("tcp://127.0.0.1:8786", True, id="this-machine"),
        pytest.param("tcp://localhost:8786", True, id="this-machine-by-name"),
        pytest.param("tcp://[::1]:8786", True, id="this-machine-ipv6"),
        pytest.param("tcp://scheduler:8786", False, id="another-machine"),
        pytest.param("ws://scheduler:8786", False, id="web-socket"),
        pytest.param("ucx://scheduler:8786", False, id="ucx"),
        pytest.param("tcp://127.0.0.1.evil.example:8786", False, id="a-name-like-an-address"),
        pytest.param("tcp://localhost.evil.example:8786", False, id="a-name-like-localhost"),
    ],
)
def test_a_scheduler_elsewhere_needs_tls(address: str, accepted: bool) -> None:
    if accepted:
        Settings.model_validate({"rendering": {"dask": address}})
        return

    with pytest.raises(ValueError, match="must start with tls:// or wss://"):
        Settings.model_validate({"rendering": {"dask": address}})
