"""A real headless browser: Chromium, driven by Selenium. Tests skip when one of them is not installed."""

from __future__ import annotations

import os
import shutil
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import WebDriverWait

_NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, _NAMES)), "")
DRIVER = shutil.which("chromedriver") or ""
MISSING = "" if BROWSER and DRIVER else "chromium and chromedriver are not there (Debian: chromium, chromium-driver)"
# The accessibility checker is not part of the project: `npm install --prefix .venv-axe axe-core` installs it.
AXE = Path(os.environ.get("RECONCILER_AXE", ".venv-axe/node_modules/axe-core/axe.min.js"))
_POLL_SECONDS = 0.05
_CLIPBOARD = ("clipboardReadWrite", "clipboardSanitizedWrite")
_FLAGS = ("--headless=new", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-gpu", "--no-first-run")


class Tab:
    """One browser tab that shows files and pages of servers. It stores the log of its page."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self._driver = driver
        self.find, self.run = driver.find_elements, driver.execute_script

    def show(self, page: Path, width: int = 1280, *, dark: bool = False, paper: bool = False) -> None:
        """Show a page in a window of the given width, in light or dark mode, or as print media."""
        self.resize(width, dark=dark, paper=paper)
        self.open("about:blank")
        self.open(page.as_uri())

    def resize(self, width: int, height: int = 900, *, dark: bool = False, paper: bool = False) -> None:
        """Use a window of the given width for this page and later pages, in light or dark mode, or as print media."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme], media="print" if paper else "screen")
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def open(self, url: str) -> None:
        """Open a URL, and wait until its page is loaded."""
        self._driver.get(url)

    @property
    def url(self) -> str:
        """The URL of the page, which scripts of the page can change."""
        return self._driver.current_url

    def set_scripts(self, *, enabled: bool) -> None:
        """Run the scripts of later pages, or do not run them."""
        self._call("Emulation.setScriptExecutionDisabled", value=not enabled)

    def set_network(self, *, is_online: bool) -> None:
        """Connect or disconnect the network of the pages."""
        self._call("Network.enable")
        self._call(
            "Network.emulateNetworkConditions", offline=not is_online, latency=0, downloadThroughput=-1,
            uploadThroughput=-1,
        )  # fmt: skip

    @contextmanager
    def run_before_pages(self, script: str) -> Iterator[None]:
        """Run a script in each page that is opened in the `with` block, before the scripts of the page."""
        added = self._call("Page.addScriptToEvaluateOnNewDocument", source=script)
        yield
        self._call("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])

    def wait(self, condition: Callable[[], object], seconds: float = 10.0) -> None:
        """Wait until a condition is true. An element that the page replaces meanwhile is not an error."""
        wait = WebDriverWait(self._driver, seconds, _POLL_SECONDS, (StaleElementReferenceException,))
        wait.until(lambda _: condition())

    def take_picture(self) -> bytes:
        """Return the whole page as PNG."""
        return b64decode(self._call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def log(self) -> list[str]:
        """Return the log entries since the last call: errors and violations of the content security policy."""
        return [item["message"] for item in self._driver.get_log("browser")]

    def allow_clipboard(self, origin: str) -> None:
        """Let the pages of a server read and write the clipboard."""
        self._call("Browser.grantPermissions", origin=origin, permissions=_CLIPBOARD)

    def press(self, *keys: str) -> None:
        """Press keys in sequence on the focused element."""
        chain = ActionChains(self._driver, duration=0)
        for key in keys:
            chain.send_keys(key)
        chain.perform()

    def press_with(self, held: str, key: str) -> None:
        """Press a key while another key is held."""
        ActionChains(self._driver, duration=0).key_down(held).send_keys(key).key_up(held).perform()

    def print(self) -> bytes:
        """Return the printed page as PDF."""
        return b64decode(self._call("Page.printToPDF", preferCSSPageSize=True)["data"])

    def check_accessibility(self) -> list[str]:
        """Return the violations that axe-core reports for the page."""
        if not self.run("return 'axe' in window"):
            self.run(AXE.read_text())
        text = "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(done)"
        result = self._driver.execute_async_script(text)
        return [
            f"{violation['id']}: {node['html']}" for violation in result["violations"] for node in violation["nodes"]
        ]

    def _call(self, command: str, **what: Any) -> Any:
        return self._driver.execute_cdp_cmd(command, what)


@contextmanager
def open_tab(profile: Path) -> Iterator[Tab]:
    """Start a browser with an empty profile and stop it at the end."""
    options = Options()
    options.binary_location = BROWSER
    # Chromium does not run its sandbox as root. The tests show only local pages.
    cage = ["--no-sandbox"] if os.geteuid() == 0 else []
    for flag in (*_FLAGS, *cage, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Tab(driver)
    finally:
        driver.quit()
