"""Notifications to systemd, read from a real datagram socket."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.service.fleet_view import FleetView, PassRecord
from reconciler.service.systemd import SystemdNotifier

TIMEOUT_SECONDS = 20.0


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(str(tmp_path / "notify"))
        datagrams.settimeout(TIMEOUT_SECONDS)
        yield datagrams


def read_all(manager: socket.socket) -> list[list[str]]:
    """Return all notifications that were sent until now, as lists of lines."""
    notifications = []
    manager.setblocking(False)
    try:
        while True:
            notifications.append(manager.recv(4_096).decode().split("\n"))
    except BlockingIOError:
        return notifications


def build_view(number: int, result: str) -> FleetView:
    return FleetView(number, 0, PassRecord(0, 1.25, result), "c0ffee", 3)


def create_notifier(manager: socket.socket, **environment: str) -> SystemdNotifier:
    return SystemdNotifier({"NOTIFY_SOCKET": manager.getsockname(), **environment})


def test_first_completed_pass_is_ready(manager: socket.socket) -> None:
    notifier = create_notifier(manager)
    with notifier.report_reload():
        notifier.report_pass(None)
    notifier.report_pass(build_view(1, "success"))
    notifier.report_pass(build_view(2, "partial"))

    assert read_all(manager) == [
        ["READY=1", "STATUS=Pass 1: success, 1.2 s, 3 targets"],
        ["STATUS=Pass 2: partial, 1.2 s, 3 targets"],
    ]


def test_reload_is_reported_even_if_it_fails(manager: socket.socket) -> None:
    notifier = create_notifier(manager)
    notifier.report_pass(build_view(1, "success"))
    with pytest.raises(ZeroDivisionError), notifier.report_reload():
        raise ZeroDivisionError
    _, reloading, ready = read_all(manager)

    assert reloading[0] == "RELOADING=1"
    assert reloading[1].removeprefix("MONOTONIC_USEC=").isdecimal()
    assert ready == ["READY=1"]


def test_abstract_socket() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        name = f"reconciler-test-{os.getpid()}"
        manager.bind(f"\0{name}")
        SystemdNotifier({"NOTIFY_SOCKET": f"@{name}"}).send("STOPPING=1")

        assert read_all(manager) == [["STOPPING=1"]]


def test_watchdog_is_kept_while_the_process_works(manager: socket.socket) -> None:
    notifier = create_notifier(manager, WATCHDOG_USEC="2000", WATCHDOG_PID=str(os.getpid()))
    with notifier.keep_watchdog(lambda: False):
        notifications = [manager.recv(4_096) for _ in range(3)]

    assert notifications == [b"WATCHDOG=1"] * 3


def test_watchdog_is_not_kept_for_a_stuck_process(manager: socket.socket) -> None:
    checks: list[int] = []
    has_checked = threading.Event()

    def is_stuck() -> bool:
        checks.append(1)
        if len(checks) == 3:
            has_checked.set()
        return True

    with create_notifier(manager, WATCHDOG_USEC="2000").keep_watchdog(is_stuck):
        assert has_checked.wait(TIMEOUT_SECONDS)

    assert read_all(manager) == []


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"WATCHDOG_USEC": "2000"}, id="no-socket"),
        pytest.param({"NOTIFY_SOCKET": "/run/none", "WATCHDOG_USEC": "2000", "WATCHDOG_PID": "1"}, id="other-process"),
        pytest.param({"NOTIFY_SOCKET": "/run/none"}, id="no-watchdog"),
    ],
)
def test_no_watchdog(environment: dict[str, str]) -> None:
    threads = threading.active_count()
    with SystemdNotifier(environment).keep_watchdog(lambda: False):
        assert threading.active_count() == threads


def test_failed_notification_has_no_effect(tmp_path: Path) -> None:
    SystemdNotifier({"NOTIFY_SOCKET": str(tmp_path / "none")}).report_pass(build_view(1, "success"))
