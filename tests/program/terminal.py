"""The program on a terminal."""

import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time

from program import PROGRAM


class Terminal:
    """The program on a terminal of its own, whose keys make signals as usual."""

    def __init__(self, *arguments):
        self.output = ""
        primary, secondary = pty.openpty()
        self.primary = primary
        self.mode_before = self.mode()
        self.process = subprocess.Popen(
            [PROGRAM, *map(str, arguments)], stdin=secondary, stdout=secondary, stderr=secondary, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env={**os.environ, "TERM": "xterm"},
        )  # fmt: skip
        os.close(secondary)

    def mode(self) -> list:
        return termios.tcgetattr(self.primary)

    def send(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self.primary, data) :]

    def wait_for(self, pattern: str, seconds: float = 60) -> str:
        """What was printed up to the pattern, which is then taken away."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.output)):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.primary], [], [], left)[0]:
                raise AssertionError(f"no '{pattern}' in {self.output!r}")
            try:
                data = os.read(self.primary, 65536)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"ended without '{pattern}': {self.output!r}")
            self.output += data.decode(errors="replace")
        before, self.output = self.output[: found.end()], self.output[found.end() :]
        return before

    def wait(self) -> int:
        """The exit status. What was printed until then is in `output`."""
        try:
            self.wait_for("(?!)")
        except AssertionError:
            pass
        return self.process.wait(30)

    def kill(self) -> None:
        if self.primary >= 0:
            self.process.kill()
            self.process.wait()
            os.close(self.primary)
            self.primary = -1

    def close(self) -> int:
        try:
            return self.wait()
        finally:
            self.kill()
