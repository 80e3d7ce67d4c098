"""What was done when: a file of JSON lines that is kept with the model; and how much time is left."""

import json
import time
from pathlib import Path


class Journal:
    """Appends to its file at once, so that nothing is lost when a run is cut off."""

    def __init__(self, path: Path):
        self._path = path

    def write(self, event: str, **facts) -> None:
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": event} | facts
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(event, *(f"{name} {_short(value)}" for name, value in facts.items()), flush=True)


class Clock:
    """Counts down from the moment that it is made."""

    def __init__(self, seconds: float):
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        return self._end - time.monotonic()


class Ticker:
    """Says when it is time again for something that is done every so often."""

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._next = time.monotonic() + seconds

    def __call__(self) -> bool:
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + self._seconds
        return True


def _short(value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
