"""The client of the API of a running service, for commands with the option `--server`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler import credential_files
from reconciler.cli.exit_codes import CannotRunError
from reconciler.server import api_client, health_client

if TYPE_CHECKING:
    from reconciler.server.api_client import ApiClient


@contextmanager
def open_client(url: str, token_file: Path | None) -> Iterator[ApiClient]:
    """Yield the client with the token in a file.

    Raises:
        CannotRunError: The URL or the file cannot be used, or the service has refused a request, does not respond, or
            returns an unexpected result.
    """
    try:
        token = credential_files.read_secrets(token_file)[0].decode() if token_file else ""
        yield api_client.ApiClient(url, token)
    except (credential_files.SecretFileError, health_client.NoResponseError, api_client.ApiRefusedError) as error:
        raise CannotRunError(str(error)) from None
    except LookupError as error:
        raise CannotRunError(
            f"{url}: the response does not contain the field {error}; use the same version of the command"
            " and the service"
        ) from None
    except ValueError as error:
        raise CannotRunError(f"--server: {error}") from None
