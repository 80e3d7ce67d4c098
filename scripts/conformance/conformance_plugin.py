"""For pytest: ends the servers of each test, leaves out what the list of skips names, and writes what came of each."""

import fnmatch
import json
import os
import tomllib
from pathlib import Path

import pytest

SKIPS = tomllib.loads((Path(__file__).parent / "skips.toml").read_text())["skip"]
OUTCOMES: dict[str, str] = {}


def reason_to_skip(name: str) -> str | None:
    return next((skip["reason"] for skip in SKIPS if any(fnmatch.fnmatch(name, test) for test in skip["tests"])), None)


def pytest_configure(config) -> None:
    config.addinivalue_line("markers", "slow: needs large models")
    config.addinivalue_line("markers", "serial: alone")


def pytest_collection_modifyitems(items) -> None:
    for item in items:
        file, test = item.nodeid.split("::", 1)  # what a test is called may have slashes, too
        name = f"{Path(file).stem}::{test}".replace("test_", "", 1).replace("::test_", "::", 1)
        reason = "needs large models" if item.get_closest_marker("slow") else reason_to_skip(name)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def stop_servers():
    yield
    from utils import server_instances

    for server in list(server_instances):
        server.stop()


def pytest_runtest_logreport(report) -> None:
    if report.when == "call" or report.outcome != "passed":
        OUTCOMES[report.nodeid] = report.outcome


def pytest_sessionfinish() -> None:
    Path(os.environ["FORERUN_CONFORMANCE_OUTCOMES"]).write_text(json.dumps(OUTCOMES))
