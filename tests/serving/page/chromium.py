"""A browser for tests: Chromium without a window, steered over a pipe by the DevTools protocol.

Messages are JSON, each ended by a NUL byte: commands go to its descriptor 3, answers and events come from 4.
"""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SECONDS = 60


class Chromium:
    """A running browser with one page."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        profile = self._stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        to_browser, commands = os.pipe()
        answers, from_browser = os.pipe()
        assert CHROMIUM is not None
        line = [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
            "--disable-background-networking", f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip

        def connect() -> None:
            """Give the browser the descriptors 3 and 4, whatever their numbers are here."""
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
            for number, end in enumerate(ends, start=3):
                os.dup2(end, number)

        self.process = subprocess.Popen(
            line, preexec_fn=connect, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(from_browser)
        self._commands = self._stack.enter_context(os.fdopen(commands, "wb", buffering=0))
        self._answers = self._stack.enter_context(os.fdopen(answers, "rb"))
        self._number, self.events = 0, list[dict[str, Any]]()
        self._session: str | None = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        self._session = None
        self._commands.write(json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._stack.close()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _read(self) -> dict[str, Any]:
        content = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser has ended"
            content += byte
        message: dict[str, Any] = json.loads(content)
        if "method" in message:
            self.events.append(message)
        return message

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, which the browser computes for us."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def open(self, url: str) -> None:
        """Open an address, and wait for all that it loads."""
        self.events.clear()
        self.send("Page.navigate", url=url)
        self.wait_for_load()

    def wait_for_load(self) -> None:
        """Wait until a page that is under way has been loaded."""
        self.wait(lambda: any(event["method"] == "Page.loadEventFired" for event in self.events))

    def wait(self, condition: Callable[[], Any]) -> None:
        """Wait until something holds."""
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, "it takes too long"
            self.evaluate("0")  # reads the events that have come
            time.sleep(0.02)

    def resize(self, width: int, *, dark: bool = False) -> None:
        """Give the page a width, and a color scheme."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def press(self, key: str) -> None:
        """Press a key: `Tab`, `Enter`, `Escape`, or an arrow."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40}
        values: dict[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        if key == "Enter":
            values["text"] = "\r"
        self.send("Input.dispatchKeyEvent", type="keyDown", **values)
        self.send("Input.dispatchKeyEvent", type="keyUp", **values)

    def type(self, text: str) -> None:
        """Write into the field that has the focus."""
        self.send("Input.insertText", text=text)

    def tab_to(self, selector: str) -> None:
        """Press Tab until an element has the focus; it has to be seen that it has."""
        for _ in range(300):
            self.press("Tab")
            if self.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                assert self.evaluate("document.activeElement.matches(':focus-visible')"), selector
                return
        raise AssertionError(f"Tab does not reach {selector}")

    def drag(self, begin: str, end: str | None = None) -> None:
        """Press the mouse on one point and release it on another, or on the same: a click.

        Args:
            begin: expression of JavaScript for a rectangle, whose left edge is the point; without *end* its
                middle is.
            end: expression for a rectangle, whose right edge is the second point.
        """
        rectangles = [self.evaluate(f"({each}).toJSON()") for each in (begin, end or begin)]
        sides = ("left", "right") if end else ("middle", "middle")
        points = [
            (
                each["left"] + each["width"] / 2 if side == "middle" else each[side],
                each["top"] + each["height"] / 2,
            )
            for each, side in zip(rectangles, sides, strict=True)
        ]
        kinds = zip(
            ("mousePressed", "mouseMoved", "mouseReleased"), (points[0], points[1], points[1]), strict=True
        )
        for kind, (x, y) in kinds:
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def click(self, selector: str) -> None:
        """Click on the middle of an element, which is scrolled into view."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{found}.scrollIntoView({{block: 'center'}})")
        self.drag(f"{found}.getClientRects()[0]")

    def follow(self) -> None:
        """Press Enter, and wait for the page that it leads to."""
        self.events.clear()
        self.press("Enter")
        self.wait_for_load()

    def requests(self) -> list[str]:
        """Return the addresses that have been requested since the page was opened."""
        events = (event for event in self.events if event["method"] == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in events]

    def complaints(self) -> list[str]:
        """Return what the browser has complained of since the page was opened."""
        entries = [
            event["params"]["entry"]["text"] for event in self.events if event["method"] == "Log.entryAdded"
        ]
        errors = [event for event in self.events if event["method"] == "Runtime.exceptionThrown"]
        return [*entries, *map(str, errors)]
