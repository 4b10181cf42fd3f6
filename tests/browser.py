"""A browser for tests: headless Chromium, driven through two pipes.

In: a page on disk, JavaScript, clicks, keys. Out: values, and pictures. Chromium takes DevTools
commands as JSON over file descriptors 3 and 4, so that no library is needed for it.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from select import select
from time import monotonic
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_S = 60.0

AT_3_AND_4 = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts the pipes where Chromium looks for them."""


def chromium() -> str | None:
    """Where Chromium is, if there is one that pipes work with."""
    if not sys.platform.startswith("linux"):
        return None
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """A browser with one page. Use it in `with`, and `open` files in it."""

    def __init__(self) -> None:
        self._count = 0
        self._left = b""
        self._session = ""
        self.opened_s = 0.0
        """From the navigation until the page said that it is ready."""
        self.errors: list[str] = []
        """What pages threw, or wrote as an error."""

    def __enter__(self) -> Page:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        program = chromium()
        assert program is not None
        flags = (
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--remote-debugging-pipe", "--no-first-run", "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self._folder.name}",
        )  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", AT_3_AND_4, str(to_read), str(to_write), program, *flags],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        return self

    def open(self, path: Path, dark: bool = False, width: int = 1280, height: int = 900) -> None:
        """Show a file, once it has said that it is ready."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url="about:blank")
        began = monotonic()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        here = f"location.pathname === {json.dumps(str(path.resolve()))}"
        ready = "document.documentElement?.dataset?.ready"
        while not self.js(f"{here} && {ready} ? 1 : 0"):
            assert not self.errors, self.errors
            assert monotonic() - began < PATIENCE_S, "the page does not get ready"
        self.opened_s = monotonic() - began

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        os.close(self._write)
        os.close(self._read)
        self._folder.cleanup()

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a DevTools command; its result."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = monotonic() + PATIENCE_S
        while True:
            found = self._next(until)
            self._note(found)
            if found.get("id") == self._count:
                assert "error" not in found, found["error"]
                result: dict[str, Any] = found["result"]
                return result

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._left:
            ready, _, _ = select([self._read], [], [], max(0.0, until - monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._read, 1 << 16)
            assert part, "the browser has ended"
            self._left += part
        text, _, self._left = self._left.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        what = message.get("method")
        if what == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.errors.append(str(details.get("exception", {}).get("description", details)))
        elif what == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.errors.append(message["params"]["entry"]["text"])

    def js(self, code: str) -> Any:
        """The value of an expression in the page."""
        found = self.ask("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def click(self, x: float, y: float) -> None:
        """Click at a place of the window."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.ask(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                clickCount=int(kind != "mouseMoved"),
            )  # fmt: skip

    def move(self, x: float, y: float) -> None:
        """Move the pointer there."""
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click_on(self, selector: str) -> None:
        """Scroll to an element and click in its middle."""
        place = self.js(
            f"(() => {{ const one = document.querySelector({selector!r});"
            " one.scrollIntoView({block: 'center', behavior: 'instant'});"
            " const box = one.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        self.click(*place)

    def key(self, key: str) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, selector: str, text: str) -> None:
        """Write into an input, in place of what is there."""
        self.click_on(selector)
        self.js(f"document.querySelector({selector!r}).select()")
        self.ask("Input.insertText", text=text)

    def text(self, selector: str) -> str:
        """What an element says; '' if there is none."""
        one = f"document.querySelector({selector!r})"
        return str(self.js(f"{one}?.innerText ?? {one}?.textContent ?? ''"))

    def picture(self, path: Path, selector: str = "") -> None:
        """Take a PNG of the page, or of one element."""
        clip: dict[str, Any] = {}
        if selector:
            x, y, width, height = self.js(
                f"(() => {{ const box = document.querySelector({selector!r})"
                ".getBoundingClientRect();"
                " return [box.x + scrollX, box.y + scrollY, box.width, box.height]; })()"
            )
            clip = {"clip": {"x": x, "y": y, "width": width, "height": height, "scale": 1}}
        taken = self.ask("Page.captureScreenshot", captureBeyondViewport=True, **clip)
        path.write_bytes(base64.b64decode(taken["data"]))
