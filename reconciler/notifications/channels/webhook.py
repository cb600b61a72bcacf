"""Generic webhooks: the public payload as JSON, signed as Standard Webhooks defines (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence

from reconciler.lazy_dataclasses import dataclass
from reconciler.notifications.channel import ChannelError
from reconciler.notifications.http import HttpClient
from reconciler.notifications.messages import Message
from reconciler.notifications.secrets import read_secrets

_PREFIX = "whsec_"
_MAX_SECRETS = 2


@dataclass(frozen=True)
class WebhookChannel:
    """A webhook. During a rotation, the secret file has two secrets, and each request has two signatures.

    Attributes:
        clock: Returns seconds since 1970, for the header `webhook-timestamp`.
    """

    url: str
    secret_file: str
    http: HttpClient
    clock: Callable[[], float]

    def send(self, message: Message) -> Mapping[str, str]:
        """Send the payload of a message with its signatures."""
        body = self.format(message).encode()
        timestamp = str(int(self.clock()))
        secrets = [decode_secret(secret) for secret in read_secrets(self.secret_file)[:_MAX_SECRETS]]
        headers = {
            "webhook-id": message.id,
            "webhook-timestamp": timestamp,
            "webhook-signature": sign(message.id, timestamp, body, secrets),
        }
        self.http.post(self.url, body, headers)
        return {}

    def format(self, message: Message) -> str:
        """Return the body of the request."""
        return json.dumps(message.payload, ensure_ascii=False)


def decode_secret(secret: str) -> bytes:
    """Return the key of a secret. The key of `whsec_<base64>` is decoded, and any other text is the key itself.

    Raises:
        ChannelError: The text after `whsec_` is not Base64.
    """
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise ChannelError(f"the text after {_PREFIX} in the secret file of a webhook must be Base64") from None


def sign(message_id: str, timestamp: str, body: bytes, secrets: Sequence[bytes]) -> str:
    """Return the header `webhook-signature`: one signature for each secret, separated by a space."""
    content = f"{message_id}.{timestamp}.".encode() + body
    digests = (hmac.new(secret, content, hashlib.sha256).digest() for secret in secrets)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)
