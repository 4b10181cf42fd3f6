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


def chromium() -> str | None:
    """Where Chromium is, if there is one that pipes work with."""
    if not sys.platform.startswith("linux"):
        return None
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """A page that is open. Use it in `with`."""

    def __init__(
        self, path: Path, dark: bool = False, width: int = 1280, height: int = 900
    ) -> None:
        self._path, self._dark, self._size = path, dark, (width, height)
        self._count = 0
        self._left = b""
        self.errors: list[str] = []
        """What the page threw, or wrote as an error."""

    def __enter__(self) -> Page:
        self._folder = tempfile.TemporaryDirectory()
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        program = chromium()
        assert program is not None
        flags = (
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--remote-debugging-pipe", "--no-first-run", "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self._folder.name}",
        )  # fmt: skip

        def third_and_fourth() -> None:
            kept, given = os.dup(to_read), os.dup(to_write)
            os.dup2(kept, 3)
            os.dup2(given, 4)

        self._process = subprocess.Popen(
            [program, *flags, "about:blank"],
            preexec_fn=third_and_fourth,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._session = ""
        targets = self.ask("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        width, height = self._size
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if self._dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        began = monotonic()
        self.ask("Page.navigate", url=self._path.resolve().as_uri())
        while not self.js("document.documentElement.dataset.ready || ''"):
            assert not self.errors, self.errors
            assert monotonic() - began < PATIENCE_S, "the page does not get ready"
        self.opened_s = monotonic() - began
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._write)
        os.close(self._read)
        self._process.terminate()
        self._process.wait(PATIENCE_S)
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
        return str(self.js(f"document.querySelector({selector!r})?.innerText ?? ''"))

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
