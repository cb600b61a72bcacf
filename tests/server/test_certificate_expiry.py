"""The expiry of the certificate of the HTTP server, and its metric."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.server.certificate_expiry import read_expiry
from reconciler.server.tls import ServerCertificate
from reconciler.telemetry.metrics import REGISTRY
from tests.support.certificates import write_certificate
from tests.support.metric_samples import read_metric

METRIC, LABELS = "reconciler_credential_expiry_timestamp_seconds", '{remote="server",use="tls"}'


@pytest.mark.parametrize(
    "expiry",
    [
        pytest.param(datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC), id="two-digits-of-the-year"),
        pytest.param(datetime(2050, 1, 1, tzinfo=UTC), id="four-digits-of-the-year"),
        pytest.param(datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC), id="with-seconds"),
    ],
)
def test_expiry_of_the_first_certificate_is_read(expiry: datetime, tmp_path: Path) -> None:
    (file, _) = write_certificate(tmp_path, "server", expiry=expiry)
    (issuer, _) = write_certificate(tmp_path, "issuer")
    file.write_text(f"# Straße\n{file.read_text()}{issuer.read_text()}", encoding="latin-1")

    assert read_expiry(file) == expiry.timestamp()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", id="no-certificate"),
        pytest.param("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", id="cut"),
    ],
)
def test_expiry_of_an_invalid_certificate_is_unknown(text: str, tmp_path: Path) -> None:
    (tmp_path / "server.pem").write_text(text)

    assert read_expiry(tmp_path / "server.pem") is None


def test_expiry_of_a_missing_file_is_unknown(tmp_path: Path) -> None:
    assert read_expiry(tmp_path / "server.pem") is None


def test_the_metric_contains_the_expiry_of_the_current_certificate(tmp_path: Path) -> None:
    first, second = datetime(2031, 1, 1, tzinfo=UTC), datetime(2032, 1, 1, tzinfo=UTC)
    with REGISTRY.export(), capture_logs():
        certificate = ServerCertificate(write_certificate(tmp_path, "server", expiry=first))
        before = read_metric(METRIC)
        write_certificate(tmp_path, "server", expiry=second)
        asyncio.run(certificate.reload_if_changed())
        after = read_metric(METRIC)

    assert [before, after] == [{LABELS: expiry.timestamp()} for expiry in (first, second)]
