#!/usr/bin/env python3
"""Does to a real `forerun serve` what clients, disks and operators can do to it.

All along somebody else asks the same two things, one greedy and one sampled, and must get the same texts as
when nobody else was there. Everything is done three times to one server, whose memory may not grow
the last time. FORERUN_PROGRAM names the program: one that was built with AddressSanitizer sees more.

    scripts/serve_checks/faults.py [--only NAME] [--mutations 10000] [--seed 1]
"""

import argparse
import functools
import random
import sys
import time

from fault_connections import CONNECTION_FAULTS
from fault_processes import PROCESS_FAULTS
from fault_requests import bytes_that_are_no_text, huge_numbers, mutations, nested
from served import TOOLS_TEMPLATE, Broken, CheckedServer, Witness, allow_many_files

MOST_GROWTH_MB = 25
N_ROUNDS = 3  # in the first ones the cache and the pools of memory fill up


def name_of(fault) -> str:
    return fault.func.__name__ if isinstance(fault, functools.partial) else fault.__name__


def report(fault, *arguments) -> None:
    begin = time.monotonic()
    try:
        seen = fault(*arguments)
    except Broken as broken:
        raise Broken(f"{name_of(fault)}: {broken}") from None
    print(f"{name_of(fault):24} {time.monotonic() - begin:6.1f} s   {seen}", flush=True)


def on_one_server(faults: list) -> None:
    # Answers end at 400 tokens whatever a mutation asks for.
    flags = ("-c", 512, "-n", 400, "--cells", 4096, "--chat-template-file", TOOLS_TEMPLATE, "--max-waiting", 5000)
    with CheckedServer(*flags) as server, Witness(server) as witness:
        sizes = []
        for n_round in range(1, N_ROUNDS + 1):
            for fault in faults:
                report(fault, server)
                server.check_alive()
            server.wait_until_idle()
            sizes.append(server.rss_mb())
            print(f"round {n_round}: {sizes[-1]:.0f} MB, {witness.n_answers} answers of another the same", flush=True)
            if witness.trouble:
                raise Broken(f"another's request: {witness.trouble}")
        if sizes[-1] - sizes[-2] > MOST_GROWTH_MB:
            raise Broken(f"memory grows from {sizes[-2]:.0f} to {sizes[-1]:.0f} MB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="the one of this name")
    parser.add_argument("--mutations", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    allow_many_files()
    mutate = functools.partial(mutations, n_requests=options.mutations // N_ROUNDS, rng=random.Random(options.seed))
    shared = [*CONNECTION_FAULTS, bytes_that_are_no_text, nested, huge_numbers, mutate]
    wanted = [fault for fault in [*shared, *PROCESS_FAULTS] if options.only in (None, name_of(fault))]
    if not wanted:
        sys.exit(f"faults: there is no {options.only}")
    try:
        if faults := [fault for fault in wanted if fault in shared]:
            on_one_server(faults)
        for fault in wanted:
            if fault in PROCESS_FAULTS:
                report(fault)
    except Broken as broken:
        print(f"faults: {broken}", file=sys.stderr)
        return 1
    print("faults: the server stands all of them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
