"""What an answer of a forge says: its refusals as errors, its words in one line, its wish to be left alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from reconciler.forge.errors import (
    ForgeAnswerError,
    ForgeBusyError,
    ForgeCredentialsError,
    ForgeError,
    ForgeMissingError,
    ForgeRefusedError,
    ForgeUnreachableError,
)
from reconciler.redaction import redact

_LONGEST_WORDS = 500
_USUAL_REST = 60
# a header gone wrong must not silence us for days
_LONGEST_REST = 6 * 3600
_WISHES = re.compile(r"secondary rate limit|rate limit exceeded|abuse detection", re.IGNORECASE)
_RESETS = ("x-ratelimit-reset", "ratelimit-reset")
_REMAINING = ("x-ratelimit-remaining", "ratelimit-remaining")


def parse_json(content: bytes, call: str) -> Any:
    """Return what JSON text says. Raises ForgeAnswerError."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        # the cause would carry the whole text
        raise ForgeAnswerError(f"{call}: the answer is not JSON, as a forge's would be") from None


def in_line(words: str) -> str:
    """Return words as one line of at most 500 characters, without credentials in URLs."""
    text = redact(" ".join("".join(c if c.isprintable() else " " for c in words).split()))
    return text if len(text) <= _LONGEST_WORDS else text[: _LONGEST_WORDS - 1] + "…"


def said(content: bytes) -> str:
    """Return the words of a refusal: a forge's `message`, `error` and `errors`, else the text as it is."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return content.decode("utf-8", "replace")
    if not isinstance(answer, dict):
        return content.decode("utf-8", "replace")
    told = [answer.get(key) for key in ("message", "error", "error_description", "errors")]
    return "; ".join(dict.fromkeys(words for value in told for words in _words(value)))


def _words(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _words(item)
    elif isinstance(value, dict):
        if message := value.get("message"):
            yield from _words(message)
        else:
            yield ", ".join(f"{key} {' '.join(_words(item))}" for key, item in value.items())
    elif value:
        yield str(value)


def rest_of(status: int, headers: Mapping[str, str], words: str, now: float) -> float | None:
    """Return until when the forge wants to be left alone, in seconds since 1970, or None if it did not say so."""
    spent = any(headers.get(name) == "0" for name in _REMAINING)
    if status == 429 or (status == 403 and (spent or "retry-after" in headers or _WISHES.search(words))):
        until = _retry_after(headers, now) or (_reset(headers) if spent else None) or 0.0
        return min(until if until > now else now + _USUAL_REST, now + _LONGEST_REST)
    if status == 503 and (until_then := _retry_after(headers, now)):
        return min(until_then, now + _LONGEST_REST)
    return None


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", value):
        return now + max(int(value), 1)
    try:
        return parsedate_to_datetime(value).timestamp()
    except ValueError:
        return None


def _reset(headers: Mapping[str, str]) -> float | None:
    values = (headers.get(name, "").strip() for name in _RESETS)
    return next((float(value) for value in values if re.fullmatch(r"[0-9]{1,12}", value)), None)


def name_refusal(status: int, headers: Mapping[str, str], words: str, call: str, now: float) -> ForgeError:
    """Return the error that an answer of 300 or more stands for."""
    message = f"{call}: {status} {words}".rstrip()
    if (until := rest_of(status, headers, words, now)) is not None:
        return ForgeBusyError(message, until)
    if status >= 500:
        return ForgeUnreachableError(message)
    if status == 401:
        return ForgeCredentialsError(message)
    if status == 404:
        return ForgeMissingError(message)
    if status >= 400:
        return ForgeRefusedError(message, status)
    return ForgeAnswerError(message)
