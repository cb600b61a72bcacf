"""E-mail with smtplib: a plain text and an HTML part, and one thread per group."""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from email.utils import formatdate
from html import escape
from typing import Literal

from reconciler.krm.json_text import compute_hash
from reconciler.lazy_dataclasses import dataclass
from reconciler.notifications.channel import ChannelError
from reconciler.notifications.http import HostPolicy
from reconciler.notifications.messages import Message
from reconciler.notifications.secrets import read_secret
from reconciler.notifications.text_writer import TextWriter
from reconciler.output.text import to_one_line

SmtpSecurity = Literal["starttls", "tls", "none"]
_TIMEOUT_SECONDS = 10.0
_MAX_SUBJECT = 200


class _MailServer(smtplib.SMTP):
    """A connection to the IP address `address`. TLS verifies that the certificate is valid for the host name `host`.

    By default, smtplib resolves the host name again, and the new address can differ from the address that was checked.
    Therefore, this class connects to `address`.
    """

    def __init__(self, host: str, port: int, address: str, tls: ssl.SSLContext | None) -> None:
        self._address = address
        self._tls = tls
        super().__init__(host, port, timeout=_TIMEOUT_SECONDS)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        connection = socket.create_connection((self._address, port), timeout)
        return self._tls.wrap_socket(connection, server_hostname=host) if self._tls else connection


@dataclass(frozen=True)
class EmailChannel:
    """A mail server and the recipients.

    Attributes:
        username: The name for the login. "" sends without a login.
        create_tls_context: Creates the TLS context that verifies the certificate of the server.
    """

    host: str
    port: int
    security: SmtpSecurity
    username: str
    password_file: str
    sender: str
    recipients: tuple[str, ...]
    hosts: HostPolicy
    texts: TextWriter
    create_tls_context: Callable[[], ssl.SSLContext] = ssl.create_default_context

    def send(self, message: Message) -> Mapping[str, str]:
        """Send a message to all recipients."""
        address = self.hosts.resolve(self.host, self.port)
        password = read_secret(self.password_file) if self.username else ""
        mail = self._build(message)
        try:
            with self._connect(address) as server:
                if self.security == "starttls":
                    server.starttls(context=self.create_tls_context())
                if self.username:
                    server.login(self.username, password)
                server.send_message(mail)
        except smtplib.SMTPResponseException as error:
            raise ChannelError(
                f"the mail server {self.host} responded with the SMTP status {error.smtp_code}"
            ) from None
        except (smtplib.SMTPException, OSError) as error:
            raise ChannelError(f"the mail server {self.host} cannot be used: {type(error).__name__}") from None
        return {}

    def format(self, message: Message) -> str:
        """Return the e-mail as text."""
        return self._build(message).as_string()

    def _connect(self, address: str) -> smtplib.SMTP:
        tls = self.create_tls_context() if self.security == "tls" else None
        return _MailServer(self.host, self.port, address, tls)

    def _build(self, message: Message) -> EmailMessage:
        mail = EmailMessage()
        domain = self.sender.rpartition("@")[2].rstrip(">")
        thread = compute_hash([message.route, message.thread])[:32]
        mail["From"], mail["To"] = self.sender, ", ".join(self.recipients)
        mail["Subject"] = to_one_line(f"[reconciler] {message.title}")[:_MAX_SUBJECT]
        mail["Date"] = formatdate(message.seconds)
        mail["Message-ID"] = f"<{message.id}@{domain}>"
        # All messages about one group refer to the same ID, so that mail programs show them as one thread.
        mail["References"] = f"<{thread}@{domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        text = self.texts.render(message, "txt")
        mail.set_content(_format_text(message) if text is None else text)
        html = self.texts.render(message, "html")
        mail.add_alternative(_format_html(message) if html is None else html, subtype="html")
        return mail


def _format_context(message: Message) -> str:
    return f"{message.severity.value}, shard {message.shard}"


def _format_text(message: Message) -> str:
    parts = (message.title, "\n".join(message.lines), message.link, _format_context(message))
    return "\n\n".join(part for part in parts if part) + "\n"


def _format_html(message: Message) -> str:
    lines = "".join(f"<li>{escape(line)}</li>" for line in message.lines)
    link = f'<p><a href="{escape(message.link)}">Open the console</a></p>' if message.link else ""
    return (
        f"<h2>{escape(message.title)}</h2>{f'<ul>{lines}</ul>' if lines else ''}{link}"
        f"<p>{escape(_format_context(message))}</p>\n"
    )
