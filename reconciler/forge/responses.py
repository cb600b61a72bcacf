"""Parses the responses of forges: JSON, error messages, rate limits and the fields of objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from reconciler.catalog.files import CommitId
from reconciler.forge.errors import (
    ForgeAnswerError,
    ForgeBusyError,
    ForgeCredentialsError,
    ForgeError,
    ForgeMissingError,
    ForgeRefusedError,
    ForgeUnreachableError,
)
from reconciler.forge.rate_limits import ForgeQuota
from reconciler.redaction import redact
from reconciler.retry_after import read_retry_after

_MAX_MESSAGE_CHARACTERS = 500
_DEFAULT_PAUSE_SECONDS = 60
# Maximum pause. A forge or proxy that sends a wrong time must not stop all requests for days.
_MAX_PAUSE_SECONDS = 6 * 3600
_RATE_LIMIT_TEXT = re.compile(r"secondary rate limit|rate limit exceeded|abuse detection", re.IGNORECASE)
_RESETS = ("x-ratelimit-reset", "ratelimit-reset")
_EXPIRY_HEADER = "github-authentication-token-expiration"
_LIMITS = ("x-ratelimit-limit", "ratelimit-limit")
_REMAINING = ("x-ratelimit-remaining", "ratelimit-remaining")


def parse_json(content: bytes, call: str) -> Any:
    """Parse JSON. Raises ForgeAnswerError if the content is not JSON. The error message contains the request `call`."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        # Do not chain the original exception, because it contains the complete response.
        raise ForgeAnswerError(f"{call}: the response is not JSON") from None


def to_one_line(text: str) -> str:
    """Convert a text to one line of at most 500 characters. Remove credentials from URLs."""
    line = redact(" ".join("".join(c if c.isprintable() else " " for c in text).split()))
    return line if len(line) <= _MAX_MESSAGE_CHARACTERS else line[: _MAX_MESSAGE_CHARACTERS - 1] + "…"


def extract_error_message(content: bytes) -> str:
    """Return the message of an error response.

    The message comes from fields such as `message`, `error` and `errors`. If the response is not a JSON object, return
    its text.
    """
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return content.decode("utf-8", "replace")
    if not isinstance(answer, dict):
        return content.decode("utf-8", "replace")
    values = [answer.get(key) for key in ("message", "error", "error_description", "errors")]
    return "; ".join(dict.fromkeys(text for value in values for text in _list_texts(value)))


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _list_texts(item)
    elif isinstance(value, dict):
        if message := value.get("message"):
            yield from _list_texts(message)
        else:
            yield ", ".join(f"{key} {' '.join(_list_texts(item))}" for key, item in value.items())
    elif value:
        yield str(value)


def compute_retry_time(status: int, headers: Mapping[str, str], message: str, now: float) -> float | None:
    """Return the time of the next allowed request, in seconds since 1970. Return None if no rate limit was reached."""
    is_exhausted = any(headers.get(name) == "0" for name in _REMAINING)
    if status == 429 or (
        status == 403 and (is_exhausted or "retry-after" in headers or _RATE_LIMIT_TEXT.search(message))
    ):
        until = _read_retry_time(headers, now) or (_read_number(headers, _RESETS) if is_exhausted else None) or 0.0
        return min(until if until > now else now + _DEFAULT_PAUSE_SECONDS, now + _MAX_PAUSE_SECONDS)
    if status == 503 and (until_then := _read_retry_time(headers, now)):
        return min(until_then, now + _MAX_PAUSE_SECONDS)
    return None


def read_quota(headers: Mapping[str, str], now: float) -> ForgeQuota:
    """Return the number of allowed requests and the clock difference that the headers of a response report."""
    limit, remaining, reset = (_read_number(headers, names) for names in (_LIMITS, _REMAINING, _RESETS))
    clock_difference = _read_clock_difference(headers.get("date", ""), now)
    return ForgeQuota(limit, remaining, reset, clock_difference, _read_expiry(headers.get(_EXPIRY_HEADER, "")))


def _read_number(headers: Mapping[str, str], names: Iterable[str]) -> int | None:
    values = (headers.get(name, "").strip() for name in names)
    return next((int(value) for value in values if re.fullmatch(r"[0-9]{1,12}", value)), None)


def _read_expiry(text: str) -> int | None:
    # GitHub writes the offset as "UTC" or as digits, for example "+0000".
    try:
        return int(datetime.strptime(text.replace("UTC", "+0000"), "%Y-%m-%d %H:%M:%S %z").timestamp())
    except ValueError:
        return None


def _read_clock_difference(date: str, now: float) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() - now
    except ValueError:
        return None


def _read_retry_time(headers: Mapping[str, str], now: float) -> float | None:
    seconds = read_retry_after(headers.get("retry-after", ""), now)
    return None if seconds is None else now + max(seconds, 1.0)


def create_status_error(status: int, headers: Mapping[str, str], text: str, call: str, now: float) -> ForgeError:
    """Return the error for a response with a status of 300 or more."""
    message = f"{call}: {status} {text}".rstrip()
    if (until := compute_retry_time(status, headers, text, now)) is not None:
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


_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


class ResponseFields:
    """The fields of a JSON object in a response. A path is a sequence of field names, such as `("head", "sha")`.

    Error messages contain the request `call`, e.g. "GET /pulls". All methods except `find` raise ForgeAnswerError if
    the value has the wrong type. They also raise this error for a null or missing value, unless the caller passes a
    default.
    """

    def __init__(self, value: object, call: str) -> None:
        self._value = value
        self._call = call
        if not isinstance(value, Mapping):
            raise ForgeAnswerError(f"{call}: the response must be an object, but is {_describe_type(value)}")

    def find(self, *path: str) -> object:
        """Return the value at a path of field names. Return None if the value is null or missing."""
        value: object = self._value
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def get_text(self, *path: str, default: str | None = None) -> str:
        """Return the text at a path of field names."""
        value = self._get_value(path, default)
        if not isinstance(value, str):
            raise self._create_error(path, "text", value)
        return value

    def get_number(self, *path: str) -> int:
        """Return the integer at a path of field names."""
        value = self.find(*path)
        # Reject bool as well, because bool is a subclass of int in Python.
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._create_error(path, "a number", value)
        return value

    def get_bool(self, *path: str, default: bool | None = None) -> bool:
        """Return the boolean at a path of field names."""
        value = self._get_value(path, default)
        if not isinstance(value, bool):
            raise self._create_error(path, "true or false", value)
        return value

    def get_names(self, *path: str, field: str = "") -> tuple[str, ...]:
        """Return the sorted texts of a list at a path of field names. Return () if the list is missing.

        If the items are objects, return the values of their field `field`.
        """
        listed = self.find(*path)
        if listed is None:
            return ()
        if not isinstance(listed, list):
            raise self._create_error(path, "a list", listed)
        names = [item.get(field) if field and isinstance(item, Mapping) else item for item in listed]
        if not all(isinstance(name, str) for name in names):
            raise self._create_error(path, "a list of strings", listed)
        return tuple(sorted(map(str, names)))

    def get_commit(self, *path: str) -> CommitId:
        """Return the commit ID at a path of field names."""
        text = self.get_text(*path)
        if not _COMMIT.fullmatch(text):
            raise self._create_error(path, "a commit", text)
        return CommitId(text)

    def get_time(self, *path: str) -> int:
        """Return the RFC 3339 time at a path of field names, converted to seconds since 1970."""
        text = self.get_text(*path)
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise self._create_error(path, "a time", text) from None
        # Reject a time without a time zone, because Python would use the time zone of this machine.
        if time.tzinfo is None:
            raise self._create_error(path, "a time with a time zone", text)
        return int(time.timestamp())

    def _get_value(self, path: tuple[str, ...], default: str | bool | None) -> object:
        value = self.find(*path)
        return default if value is None else value

    def _create_error(self, path: tuple[str, ...], expected: str, value: object) -> ForgeAnswerError:
        actual = repr(value[:40]) if isinstance(value, str) else _describe_type(value)
        return ForgeAnswerError(f"{self._call}: {'.'.join(path)} must be {expected}, but is {actual}")


def _describe_type(value: object) -> str:
    return "null" if value is None else type(value).__name__
