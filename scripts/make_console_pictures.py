"""Write docs/images/console-*.png: pages of the console of the demo.

    python scripts/make_console_pictures.py

The script needs Chromium, chromedriver and Selenium (`pip install selenium`). The ages on the pages are fixed, so that
a picture changes only with its page.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "docs" / "images"
WIDTH, FLEET_HEIGHT, CHANGE_HEIGHT = 1100, 640, 980
FLAGS = ("--headless=new", "--hide-scrollbars", "--disable-gpu", "--no-first-run", "--no-sandbox")
# The demo creates its drafts when the script runs.
FIX_TIMES = "for (const time of document.querySelectorAll('time')) time.textContent = '2 min ago'"
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@contextmanager
def serve_demo(folder: Path) -> Iterator[str]:
    """Run the demo with its console, and yield the address."""
    environment = {"PYTHONPATH": str(PROJECT), "HOME": str(folder), "PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "reconciler", "demo", "--serve", "demo"],
        cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout
        yield next(match[0] for line in process.stdout if (match := ADDRESS.search(line)))
    finally:
        process.terminate()
        process.wait()


@contextmanager
def open_browser() -> Iterator[webdriver.Chrome]:
    """Start a browser without a window."""
    options = Options()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver") or ""))
    try:
        yield driver
    finally:
        driver.quit()


def take_picture(driver: webdriver.Chrome, name: str, url: str, height: int) -> None:
    """Write the visible part of a page."""
    size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(url)
    driver.execute_script(FIX_TIMES)
    picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": False})["data"]
    (FOLDER / f"console-{name}.png").write_bytes(base64.b64decode(picture))


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, serve_demo(Path(folder)) as address, open_browser() as driver:
        driver.implicitly_wait(60)
        driver.get(f"{address}/changes")
        # The index of the demo is complete when a change is listed.
        while not (links := driver.find_elements(By.LINK_TEXT, "install gateway v1")):
            driver.refresh()
        change = str(links[0].get_attribute("href"))
        take_picture(driver, "fleet", address, FLEET_HEIGHT)
        take_picture(driver, "change", change, CHANGE_HEIGHT)


if __name__ == "__main__":
    main()
