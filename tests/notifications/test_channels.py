"""Contract tests: each channel sends its messages to a local server, which records them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_address
from pathlib import Path
from threading import Event as ThreadEvent
from typing import Any

import pytest

from reconciler.bootstrap.notifications import build_channels
from reconciler.krm.findings import Severity
from reconciler.notifications.channel import Channel, ChannelError
from reconciler.notifications.channel_findings import ChannelFindings
from reconciler.notifications.channels.email import EmailChannel
from reconciler.notifications.http import HostPolicy
from reconciler.notifications.messages import Message
from reconciler.notifications.samples import SAMPLE_EVENTS, build_sample
from reconciler.redaction import register_secret
from reconciler.settings import Settings
from tests.support.notification_servers import HttpRecorder, MailRecorder, http_server, mail_server

NOW = 1_700_000_000
HOSTILE = 'web *bold* _it_ `x` <!channel> @channel <@U1> [link](https://evil.example) <b onclick="x">&amp; {{ 7*7 }}'
MESSAGE = build_sample("ops", "drafts_waiting", "1/1", NOW, "https://reconciler.example.com")
HOSTILE_MESSAGE = replace(MESSAGE, title=HOSTILE, lines=(HOSTILE,))


@pytest.fixture
def http() -> Iterator[HttpRecorder]:
    with http_server() as recorder:
        yield recorder


@pytest.fixture
def mail() -> Iterator[MailRecorder]:
    with mail_server() as recorder:
        yield recorder


@pytest.fixture
def findings() -> ChannelFindings:
    return ChannelFindings()


@pytest.fixture
def make(tmp_path: Path, http: HttpRecorder, findings: ChannelFindings) -> Any:
    """Return a function that builds a channel of a kind. Its secret files are in `tmp_path`."""
    (tmp_path / "url").write_text(f"{http.url}/hook/s3cret\n")
    (tmp_path / "token").write_text("xoxb-1\n")
    (tmp_path / "secrets").write_text("whsec_c2VjcmV0\n")
    fields: Mapping[str, dict[str, Any]] = {
        "slack": {"kind": "slack", "url_file": str(tmp_path / "url")},
        "bot": {"kind": "slack", "token_file": str(tmp_path / "token"), "channel": "C1", "api": f"{http.url}/api/"},
        "teams": {"kind": "teams", "url_file": str(tmp_path / "url")},
        "webhook": {"kind": "webhook", "url": f"{http.url}/events", "secret_file": str(tmp_path / "secrets")},
    }

    def build(kind: str, **settings: Any) -> Channel:
        options = {"allowed_hosts": ["127.0.0.1"], **settings}
        data = {"notifications": {**options, "channels": [{"name": "ops", **fields[kind]}]}}
        return build_channels(Settings.model_validate(data), findings, lambda: NOW + 5)["ops"]

    return build


def email_channel(port: int, findings: ChannelFindings, **more: Any) -> Channel:
    channel = {
        "name": "ops", "kind": "email", "host": "127.0.0.1", "port": port, "security": "none",
        "sender": "reconciler <bot@example.com>", "recipients": ["a@example.com", "b@example.com"],
    }  # fmt: skip
    data = {"notifications": {"allowed_hosts": ["127.0.0.1"], "channels": [{**channel, **more}]}}
    return build_channels(Settings.model_validate(data), findings)["ops"]


# Webhook


def verify(headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
    """Verify a request as the specification of Standard Webhooks describes."""
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(secret, content, hashlib.sha256).digest()).decode()
    return f"v1,{expected}" in headers["webhook-signature"].split(" ")


def test_a_webhook_receives_the_signed_payload(make: Any, http: HttpRecorder) -> None:
    make("webhook").send(MESSAGE)

    (request,) = http.requests
    assert request.path == "/events"
    assert request.headers["content-type"] == "application/json"
    assert (request.headers["webhook-id"], request.headers["webhook-timestamp"]) == (MESSAGE.id, str(NOW + 5))
    assert verify(request.headers, request.body, b"secret")
    assert request.data == {
        "type": "drafts_waiting",
        "timestamp": "2023-11-14T22:13:20Z",
        "text": "Review update web v1 → v2 on 2 targets\nberlin/web, lisbon/web: this is a test message",
        "data": {
            "title": "Review update web v1 → v2 on 2 targets", "severity": "info", "group": "drafts_waiting:sample",
            "count": 1, "lines": ["berlin/web, lisbon/web: this is a test message"],
            "link": "https://reconciler.example.com", "shard": "1/1", "config": "",
            "itemCount": 2,
            "items": [
                {"target": name, "package": "web", "message": "this is a test message"} for name in ("berlin", "lisbon")
            ],
            "details": {"sample": True},
        },
    }  # fmt: skip


def test_a_rotated_secret_is_used_without_a_restart(make: Any, http: HttpRecorder, tmp_path: Path) -> None:
    channel = make("webhook")
    channel.send(MESSAGE)
    (tmp_path / "secrets").write_text("new\nwhsec_c2VjcmV0\nold-unused\n")
    channel.send(MESSAGE)
    (tmp_path / "secrets").write_text("new\n")
    channel.send(MESSAGE)

    results = [[verify(each.headers, each.body, secret) for secret in (b"secret", b"new")] for each in http.requests]
    assert results == [[True, False], [True, True], [False, True]]
    assert all(len(each.headers["webhook-signature"].split(" ")) <= 2 for each in http.requests)


def test_the_payload_is_limited_and_contains_no_registered_secret(make: Any) -> None:
    register_secret("registered-secret-value")
    items = tuple(
        replace(MESSAGE.items[0], id=str(number), message="registered-secret-value") for number in range(1500)
    )
    message = replace(MESSAGE, items=items, data={"reason": "registered-secret-value"})
    text = make("webhook").format(message)

    assert "registered-secret-value" not in text
    data = json.loads(text)["data"]
    assert (data["itemCount"], len(data["items"]), data["details"]) == (1500, 1000, {"reason": "*****"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "the secret file must be readable: No such file or directory"),
        ("\n", "must contain at least one secret, one per line"),
        ("whsec_%%%", "the text after whsec_ in the secret file of a webhook must be Base64"),
    ],
    ids=["missing", "empty", "no-base64"],
)
def test_an_unusable_secret_file_is_an_error(make: Any, tmp_path: Path, content: str | None, message: str) -> None:
    channel = make("webhook")
    (tmp_path / "secrets").unlink() if content is None else (tmp_path / "secrets").write_text(content)

    with pytest.raises(ChannelError) as error:
        channel.send(MESSAGE)
    assert message in str(error.value)


# Slack


def test_a_slack_webhook_receives_block_kit(make: Any, http: HttpRecorder) -> None:
    make("slack").send(MESSAGE)

    data = http.requests[0].data
    assert http.requests[0].path == "/hook/s3cret"
    assert [block["type"] for block in data["blocks"]] == ["header", "section", "context"]
    assert data["blocks"][0]["text"]["text"] == "Review update web v1 → v2 on 2 targets"
    assert data["text"] == "Review update web v1 → v2 on 2 targets"
    assert data["blocks"][2]["elements"][0]["text"] == (
        "info · shard 1/1 · <https://reconciler.example.com|Open the console>"
    )


def test_texts_for_slack_have_no_syntax(make: Any, http: HttpRecorder) -> None:
    make("slack").send(HOSTILE_MESSAGE)

    data = http.requests[0].data
    # Slack shows a text of the type `plain_text` unchanged.
    texts = [data["blocks"][0]["text"], data["blocks"][1]["text"]]
    assert [text["type"] for text in texts] == ["plain_text"] * 2
    assert texts[1]["text"] == HOSTILE
    assert (data["parse"], data["link_names"], data["unfurl_links"]) == ("none", False, False)
    for syntax in ("<", ">", "@channel", "*bold*", "`x`", "https://evil", "&amp;amp;amp;"):
        assert syntax not in data["text"]


def test_a_long_message_is_within_the_limits_of_slack(make: Any, http: HttpRecorder) -> None:
    make("slack").send(replace(MESSAGE, title="t" * 5000, lines=("x" * 9000,)))

    blocks = http.requests[0].data["blocks"]
    assert [len(blocks[0]["text"]["text"]), len(blocks[1]["text"]["text"])] == [150, 3000]


def test_a_message_without_lines_has_no_empty_block(make: Any) -> None:
    blocks = json.loads(make("slack").format(replace(MESSAGE, lines=())))["blocks"]

    assert [block["type"] for block in blocks] == ["header", "context"]


def test_a_large_response_is_not_read_completely(make: Any, http: HttpRecorder) -> None:
    body = json.dumps({"padding": "x" * 10_000_000, "ok": True}).encode()
    http.responses = [(200, {}, body), (200, {}, body)]
    make("slack").send(MESSAGE)

    with pytest.raises(ChannelError, match=re.escape("Slack refused chat.postMessage: no JSON")):
        make("bot").send(MESSAGE)


def test_a_bot_updates_the_first_message_and_posts_to_its_thread(make: Any, http: HttpRecorder) -> None:
    http.responses = [(200, {}, json.dumps({"ok": True, "channel": "C1X", "ts": "17.1"}).encode())]
    http.responses += [(200, {}, b'{"ok": true}')] * 2
    channel = make("bot")
    posted = channel.send(MESSAGE)
    channel.send(replace(MESSAGE, title="second", posted=posted))

    assert [request.path for request in http.requests] == [
        "/api/chat.postMessage", "/api/chat.update", "/api/chat.postMessage"
    ]  # fmt: skip
    assert {request.headers["authorization"] for request in http.requests} == {"Bearer xoxb-1"}
    first, update, reply = (request.data for request in http.requests)
    assert (first["channel"], "thread_ts" in first) == ("C1", False)
    assert (update["channel"], update["ts"], update["blocks"][0]["text"]["text"]) == ("C1X", "17.1", "second")
    assert (reply["channel"], reply["thread_ts"]) == ("C1X", "17.1")


def test_an_error_of_slack_is_reported(make: Any, http: HttpRecorder) -> None:
    http.responses = [(200, {}, b'{"ok": false, "error": "channel_not_found"}')]

    with pytest.raises(ChannelError, match=re.escape("Slack refused chat.postMessage: channel_not_found")):
        make("bot").send(MESSAGE)


# Teams


def test_teams_receives_an_adaptive_card(make: Any, http: HttpRecorder) -> None:
    make("teams").send(replace(MESSAGE, severity=Severity.ERROR))

    data = http.requests[0].data
    (attachment,) = data["attachments"]
    card = attachment["content"]
    assert (data["type"], attachment["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    assert card["body"][0]["inlines"][0]["text"] == "Review update web v1 → v2 on 2 targets"
    assert card["body"][0]["inlines"][0]["color"] == "Attention"
    assert card["actions"] == [
        {"type": "Action.OpenUrl", "title": "Open the console", "url": "https://reconciler.example.com"}
    ]


def test_texts_for_teams_are_not_interpreted_as_markdown(make: Any, http: HttpRecorder) -> None:
    make("teams").send(HOSTILE_MESSAGE)

    body = http.requests[0].data["attachments"][0]["content"]["body"]
    # A TextRun shows its text unchanged. A TextBlock would interpret Markdown.
    assert {(block["type"], block["inlines"][0]["type"]) for block in body} == {("RichTextBlock", "TextRun")}
    assert body[1]["inlines"][0]["text"] == HOSTILE


@pytest.mark.parametrize(
    "url",
    [
        "https://acme.webhook.office.com/webhookb2/x",
        "https://outlook.office.com/webhook/x",
        "https://outlook.office365.com/x",
    ],
)
def test_the_url_of_an_office_365_connector_is_refused(make: Any, tmp_path: Path, url: str) -> None:
    channel = make("teams", allowed_hosts=[])
    (tmp_path / "url").write_text(url)

    with pytest.raises(ChannelError, match="create a webhook with Power Automate Workflows") as error:
        channel.send(MESSAGE)
    assert error.value.finding is not None
    assert error.value.finding.code == "NotificationUrlRefused"
    assert "webhookb2/x" not in str(error.value)


# E-mail


def test_an_email_has_a_text_and_an_html_part(mail: MailRecorder, findings: ChannelFindings) -> None:
    email_channel(mail.port, findings).send(MESSAGE)

    (received,) = mail.mails
    assert received["Subject"] == "[reconciler] Review update web v1 → v2 on 2 targets"
    assert (received["From"], received["To"]) == ("reconciler <bot@example.com>", "a@example.com, b@example.com")
    assert mail.recipients == [["a@example.com", "b@example.com"]]
    assert (received["Auto-Submitted"], received["Message-ID"]) == ("auto-generated", f"<{MESSAGE.id}@example.com>")
    parts = [part.get_content_type() for part in received.walk()]
    assert parts == ["multipart/alternative", "text/plain", "text/html"]
    text = received.get_body(("plain",))
    assert text is not None
    assert text.get_content().splitlines() == [
        "Review update web v1 → v2 on 2 targets", "", "berlin/web, lisbon/web: this is a test message", "",
        "https://reconciler.example.com", "", "info, shard 1/1",
    ]  # fmt: skip


def test_emails_about_one_group_are_one_thread(mail: MailRecorder, findings: ChannelFindings) -> None:
    channel = email_channel(mail.port, findings)
    for message in (MESSAGE, replace(MESSAGE, id="msg_2"), replace(MESSAGE, id="msg_3", thread="other")):
        channel.send(message)

    references = [str(received["References"]) for received in mail.mails]
    assert references[0] == references[1] != references[2]
    assert len({received["Message-ID"] for received in mail.mails}) == 3


def test_texts_in_emails_are_escaped(mail: MailRecorder, findings: ChannelFindings) -> None:
    email_channel(mail.port, findings).send(replace(HOSTILE_MESSAGE, title=HOSTILE + "\r\nBcc: evil@example.com"))

    (received,) = mail.mails
    html = received.get_body(("html",))
    assert html is not None
    assert "<b onclick" not in html.get_content()
    assert "&lt;b onclick=&quot;x&quot;&gt;&amp;amp;" in html.get_content()
    assert received["Bcc"] is None
    assert mail.recipients == [["a@example.com", "b@example.com"]]


def test_an_email_is_sent_with_starttls_and_a_login(tmp_path: Path, findings: ChannelFindings) -> None:
    certificate, key = write_certificate(tmp_path)
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_tls.load_cert_chain(certificate, key)
    (tmp_path / "password").write_text("secret\n")
    login = {"security": "starttls", "username": "ops", "password_file": str(tmp_path / "password")}
    with mail_server(server_tls) as mail:
        channel = email_channel(mail.port, findings, **login)
        assert isinstance(channel, EmailChannel)
        with pytest.raises(ChannelError, match="SSLCertVerificationError"):
            channel.send(MESSAGE)
        trusting = replace(channel, create_tls_context=lambda: ssl.create_default_context(cafile=certificate))
        trusting.send(MESSAGE)
        (tmp_path / "password").write_text("wrong\n")
        with pytest.raises(ChannelError, match="responded with the SMTP status 535"):
            trusting.send(MESSAGE)

    # The client tries several mechanisms with the wrong password.
    assert mail.logins[0] == (b"ops", b"secret")
    assert set(mail.logins[1:]) == {(b"ops", b"wrong")}
    assert len(mail.mails) == 1


@pytest.mark.parametrize("security", ["none", "starttls", "tls"])
@pytest.mark.parametrize("is_valid", [True, False], ids=["valid-name", "other-name"])
def test_an_email_uses_the_checked_address_and_the_name_of_the_host(
    tmp_path: Path, findings: ChannelFindings, monkeypatch: pytest.MonkeyPatch, security: str, is_valid: bool
) -> None:
    certificate, key = write_certificate(tmp_path, "mail.example.com" if is_valid else "other.example.com")
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_tls.load_cert_chain(certificate, key)
    (tmp_path / "password").write_text("secret\n")
    login = {"username": "ops", "password_file": str(tmp_path / "password")} if security == "starttls" else {}
    names = []
    resolve = socket.getaddrinfo

    def resolve_once(host: str, *arguments: Any, **options: Any) -> Any:
        """Resolve the name to a local address. A second request for the name returns an address without a server."""
        names.append(host)
        address = host if host != "mail.example.com" else "127.0.0.1" if names.count(host) == 1 else "127.0.0.2"
        return resolve(address, *arguments, **options)

    with mail_server(server_tls if security != "none" else None, has_implicit_tls=security == "tls") as mail:
        monkeypatch.setattr(socket, "getaddrinfo", resolve_once)
        channel = email_channel(mail.port, findings, security=security, **login)
        assert isinstance(channel, EmailChannel)
        named = replace(
            channel, host="mail.example.com", hosts=HostPolicy(frozenset({"mail.example.com"})),
            create_tls_context=lambda: ssl.create_default_context(cafile=certificate),
        )  # fmt: skip
        is_accepted = is_valid or security == "none"
        with nullcontext() if is_accepted else pytest.raises(ChannelError, match="SSLCertVerificationError"):
            named.send(MESSAGE)

    assert (len(mail.mails), names.count("mail.example.com")) == (is_accepted, 1)


def write_certificate(folder: Path, host: str = "127.0.0.1") -> tuple[str, str]:
    """Write a certificate for a host and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    alternative = x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return str(files[0]), str(files[1])


def test_a_refused_email_is_an_error(mail: MailRecorder, findings: ChannelFindings) -> None:
    mail.refusal = "451 try later"

    with pytest.raises(ChannelError, match="responded with the SMTP status 451"):
        email_channel(mail.port, findings).send(MESSAGE)


def test_a_mail_server_with_a_private_address_must_be_listed(mail: MailRecorder, findings: ChannelFindings) -> None:
    channel = email_channel(mail.port, findings)
    assert isinstance(channel, EmailChannel)
    unlisted = replace(channel, hosts=replace(channel.hosts, allowed_hosts=frozenset()))

    with pytest.raises(ChannelError, match=re.escape("has the private address 127.0.0.1")):
        unlisted.send(MESSAGE)
    assert mail.mails == []


# Requests


@pytest.mark.parametrize("kind", ["slack", "teams", "webhook", "bot"])
def test_an_http_error_contains_no_secret(make: Any, http: HttpRecorder, kind: str) -> None:
    http.responses = [(500, {}, b"s3cret")]

    with pytest.raises(ChannelError, match=re.escape("127.0.0.1 responded with the HTTP status 500")) as error:
        make(kind).send(MESSAGE)
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("7", 7, 7),
        ("in ten minutes", 300, 600),
        ("999999", 3600, 3600),
        ("soon", None, None),
    ],
    ids=["seconds", "date", "limit", "invalid"],
)
def test_the_time_of_a_rate_limit_is_used(
    make: Any, http: HttpRecorder, value: str, low: float | None, high: float | None
) -> None:
    if value == "in ten minutes":
        value = format_datetime(datetime.now(UTC) + timedelta(minutes=10), usegmt=True)
    http.responses = [(429, {"Retry-After": value}, b"")]

    with pytest.raises(ChannelError) as error:
        make("slack").send(MESSAGE)
    seconds = error.value.retry_seconds
    assert seconds is None if low is None or high is None else seconds is not None and low <= seconds <= high


def test_a_redirect_is_not_followed(make: Any, http: HttpRecorder) -> None:
    http.responses = [(307, {"Location": f"{http.url}/other"}, b"")]

    with pytest.raises(ChannelError, match="HTTP status 307"):
        make("webhook").send(MESSAGE)
    assert len(http.requests) == 1


@pytest.mark.parametrize(
    ("url", "hosts", "message"),
    [
        ("https://127.0.0.1:{port}/", [], "has the private address 127.0.0.1"),
        ("https://localhost:{port}/", [], "has the private address"),
        ("https://169.254.169.254/latest", [], "has the private address 169.254.169.254"),
        ("https://[::ffff:127.0.0.1]:{port}/", [], "has the private address"),
        ("https://other.example:{port}/", ["127.0.0.1"], "is not in `notifications.allowed_hosts`"),
        ("http://127.0.0.1:{port}/", [], "must start with https://"),
        ("file:///etc/passwd", ["127.0.0.1"], "must start with https://"),
        ("https://no-such-host.invalid/", [], "cannot be resolved"),
    ],
)
def test_a_host_that_is_not_allowed_receives_nothing(
    make: Any, http: HttpRecorder, tmp_path: Path, url: str, hosts: list[str], message: str
) -> None:
    channel = make("slack", allowed_hosts=hosts)
    (tmp_path / "url").write_text(url.format(port=http.port))

    with pytest.raises(ChannelError, match=message):
        channel.send(MESSAGE)
    assert http.requests == []


def test_a_request_uses_the_checked_address_and_the_name_of_the_host(
    make: Any, http: HttpRecorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve, resolved = socket.getaddrinfo, []

    def resolve_once(host: str, *arguments: Any, **options: Any) -> Any:
        """Resolve the name to a local address. A second request for the name would fail."""
        resolved.append(host)
        return resolve("127.0.0.1" if host not in resolved[:-1] else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_once)
    channel = make("slack", allowed_hosts=["hooks.example.com"])
    (tmp_path / "url").write_text(f"http://hooks.example.com:{http.port}/x")
    channel.send(MESSAGE)

    assert http.requests[0].headers["host"] == f"hooks.example.com:{http.port}"


def test_proxies_in_environment_variables_are_not_used(
    make: Any, http: HttpRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    make("webhook").send(MESSAGE)

    assert len(http.requests) == 1


def test_a_proxy_in_the_settings_is_used(make: Any, http: HttpRecorder, tmp_path: Path) -> None:
    channel = make("slack", allowed_hosts=["hooks.example.com"], proxy=http.url)
    (tmp_path / "url").write_text("http://hooks.example.com/x")
    channel.send(MESSAGE)

    assert http.requests[0].path == "http://hooks.example.com/x"


def test_a_host_that_is_not_allowed_is_not_requested_from_the_proxy(
    make: Any, http: HttpRecorder, tmp_path: Path
) -> None:
    channel = make("slack", allowed_hosts=["hooks.example.com"], proxy=http.url)
    (tmp_path / "url").write_text("https://other.example.com/x")

    with pytest.raises(ChannelError, match=re.escape('the host "other.example.com" is not in')):
        channel.send(MESSAGE)
    assert http.requests == []


@pytest.mark.parametrize(("name", "is_valid"), [("hooks.example.com", True), ("other.example.com", False)])
def test_the_certificate_must_be_for_the_name_of_the_host(
    tmp_path: Path, findings: ChannelFindings, monkeypatch: pytest.MonkeyPatch, name: str, is_valid: bool
) -> None:
    certificate, key = write_certificate(tmp_path, name)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    # OpenSSL reads this variable, with which operators add their own certificate authority.
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *more, **options: resolve("127.0.0.1", *more, **options))
    (tmp_path / "secrets").write_text("secret")
    with http_server(tls) as http:
        url = f"https://hooks.example.com:{http.port}/"
        channel = {"name": "ops", "kind": "webhook", "url": url, "secret_file": str(tmp_path / "secrets")}
        data = {"notifications": {"allowed_hosts": ["hooks.example.com"], "channels": [channel]}}
        webhook = build_channels(Settings.model_validate(data), findings)["ops"]
        if is_valid:
            webhook.send(MESSAGE)
        else:
            with pytest.raises(ChannelError, match=re.escape("hooks.example.com cannot be reached: ConnectError")):
                webhook.send(MESSAGE)

    assert len(http.requests) == is_valid


def test_a_service_that_does_not_respond_is_an_error(
    make: Any, http: HttpRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.notifications.http._TIMEOUT_SECONDS", 0.05)
    http.hangs = ThreadEvent()

    with pytest.raises(ChannelError, match=re.escape("127.0.0.1 cannot be reached: ReadTimeout")):
        make("webhook").send(MESSAGE)


# Templates


@pytest.mark.parametrize(
    ("kind", "template", "expected"),
    [
        ("slack", "*{{ data.title }}*", "*a \u200b*\u200bb\u200b*\u200b &lt;!here&gt; \u200b@\u200bhere*"),
        ("teams", "**{{ data.title }}**", "**a \\*b\\* \\<\\!here\\> @\u200bhere**"),
    ],
)
def test_values_in_templates_are_escaped(
    make: Any, http: HttpRecorder, tmp_path: Path, kind: str, template: str, expected: str
) -> None:
    (tmp_path / f"drafts_waiting.{kind}.j2").write_text(template)
    make(kind, templates_dir=str(tmp_path)).send(replace(MESSAGE, title="a *b* <!here> @here"))

    data = http.requests[0].data
    text = data["blocks"][1]["text"] if kind == "slack" else data["attachments"][0]["content"]["body"][1]
    assert (text["type"], text["text"]) == ("mrkdwn" if kind == "slack" else "TextBlock", expected)


def test_templates_of_emails(mail: MailRecorder, findings: ChannelFindings, tmp_path: Path) -> None:
    (tmp_path / "drafts_waiting.txt.j2").write_text("TEXT {{ data.title }}")
    (tmp_path / "drafts_waiting.html.j2").write_text("<p>{{ data.title }}</p>")
    data = {
        "name": "ops", "kind": "email", "host": "127.0.0.1", "port": mail.port, "security": "none",
        "sender": "bot@example.com", "recipients": ["a@example.com"],
    }  # fmt: skip
    notifications = {"allowed_hosts": ["127.0.0.1"], "channels": [data], "templates_dir": str(tmp_path)}
    channel = build_channels(Settings.model_validate({"notifications": notifications}), findings)["ops"]
    channel.send(replace(MESSAGE, title="<b>"))

    contents = [part.get_content().strip() for part in mail.mails[0].iter_parts()]
    assert contents == ["TEXT <b>", "<p>&lt;b&gt;</p>"]


@pytest.mark.parametrize(
    "template",
    [
        "{{ unknown.name }}",
        "{{ data.unknown }}",
        "{% for %}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{% for i in range(10000000) %}x{% endfor %}",
        "",
        "{% include '/etc/passwd' %}",
    ],
    ids=["unknown-name", "unknown-key", "syntax", "sandbox", "size", "empty", "include"],
)
def test_a_failing_template_sends_the_default_text_and_a_finding(
    make: Any, http: HttpRecorder, tmp_path: Path, findings: ChannelFindings, template: str
) -> None:
    (tmp_path / "drafts_waiting.slack.j2").write_text(template)
    make("slack", templates_dir=str(tmp_path)).send(MESSAGE)

    assert http.requests[0].data["blocks"][1]["text"]["text"] == "berlin/web, lisbon/web: this is a test message"
    (finding,) = findings.list_findings()
    assert finding.code == "NotificationTemplateFailed"
    assert f"template {tmp_path / 'drafts_waiting.slack.j2'}" in finding.message


@pytest.mark.parametrize("event", SAMPLE_EVENTS)
@pytest.mark.parametrize("kind", ["slack", "teams", "webhook"])
def test_every_event_can_be_sent(make: Any, kind: str, event: str) -> None:
    channel = make(kind)
    message: Message = build_sample("ops", event, "1/1", NOW, "")

    assert message.title in json.dumps(json.loads(channel.format(message)), ensure_ascii=False)
