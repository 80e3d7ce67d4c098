"""What this machine is called."""

import platform
from pathlib import Path

# ARM's processors have numbers where others have names.
ARM_PARTS = {"0xd0c": "Neoverse N1", "0xd40": "Neoverse V1", "0xd49": "Neoverse N2", "0xd4f": "Neoverse V2"}


def machine_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return fields.get("model name") or ARM_PARTS.get(fields.get("CPU part", "")) or platform.machine()
