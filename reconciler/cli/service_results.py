"""The output of commands that read from the API of a running service instead of the repositories."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reconciler.cli import service_client
from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS
from reconciler.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from reconciler.cli.review_options import ServerOptions


@dataclass(frozen=True)
class ServiceOutput:
    """The output of a command.

    Attributes:
        text: The text or the JSON text.
        errors: The messages of the findings.
    """

    text: str
    errors: tuple[str, ...]
    exit_status: int


def request_output(
    service: ServerOptions, path: str, query: Mapping[str, str | Sequence[str]], output: str
) -> ServiceOutput:
    """Return the output of a command from all pages of a path below `/api/v1`.

    Args:
        output: The value of the option `-o`.

    Raises:
        CannotRunError: The service has refused the request, or does not respond.
    """
    with service_client.open_client(service.url or "", service.token_file) as client:
        form = {} if output == "json" else {"output": output}
        pages = [*client.read_pages(path, {**query, **form})]
        items, findings = (_join(pages, name) for name in ("items", "findings"))
        errors = tuple(str(finding["message"]) for finding in findings)
        if output == "json":
            result = {**pages[0], "items": items, "findings": findings}
            return ServiceOutput(json.dumps(result | {"next": None}, indent=2), errors, _get_status(findings))
        return ServiceOutput("\n".join(items), errors, max(page["summary"]["exitStatus"] for page in pages))


def _join(pages: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    return [item for page in pages for item in page[name]]


def _get_status(findings: Iterable[Mapping[str, Any]]) -> int:
    return ERROR_FINDING if any(finding["severity"] == "error" for finding in findings) else SUCCESS
