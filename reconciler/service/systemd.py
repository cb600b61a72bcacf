"""Notifications to systemd (`sd_notify`): ready, status, watchdog, reload and stop.

Without the variable NOTIFY_SOCKET, all functions do nothing.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from reconciler.service.fleet_view import FleetView

_MICROSECONDS = 1_000_000


class SystemdNotifier:
    """Sends notifications to the service manager that has started this process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        # An @ at the start means an abstract socket, which has no file.
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        is_for_this_process = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        microseconds = environment.get("WATCHDOG_USEC", "") if is_for_this_process else ""
        self._watchdog_seconds = int(microseconds) / _MICROSECONDS if microseconds.isdecimal() else 0.0
        self._is_ready = False

    def send(self, *lines: str) -> None:
        """Send the lines of one notification. A failed notification has no effect on the service."""
        if self._address:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
                datagrams.sendto("\n".join(lines).encode(), self._address)

    def report_pass(self, view: FleetView | None) -> None:
        """Report the last completed pass. After the first one, the service is ready."""
        if view is None:
            return
        result = view.last_pass.result
        status = f"STATUS=Pass {view.number}: {result}, {view.last_pass.duration_seconds:.1f} s, {view.targets} targets"
        self.send(*([] if self._is_ready else ["READY=1"]), status)
        self._is_ready = True

    @contextmanager
    def report_reload(self) -> Iterator[None]:
        """Report that the `with` block reloads the settings."""
        if not self._is_ready:
            yield
            return
        self.send("RELOADING=1", f"MONOTONIC_USEC={int(time.monotonic() * _MICROSECONDS)}")
        try:
            yield
        finally:
            self.send("READY=1")

    @contextmanager
    def keep_watchdog(self, is_stuck: Callable[[], bool]) -> Iterator[None]:
        """While the service is not stuck, send a watchdog notification twice per period until the `with` block ends."""
        if not (self._address and self._watchdog_seconds):
            yield
            return
        ended = threading.Event()

        def send_until_the_end() -> None:
            while not ended.wait(self._watchdog_seconds / 2):
                if not is_stuck():
                    self.send("WATCHDOG=1")

        thread = threading.Thread(target=send_until_the_end, name="watchdog", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
