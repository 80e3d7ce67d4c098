#!/usr/bin/env python3
from contextlib import ExitStack
from pathlib import Path

from library.markdown import section, table
from library.measured import decode_ms, same_text, speed_interval
from library.page import Measurement, Page, Written, how_measured, span
from library.rpc_server import Delay, RpcServer
from library.setup import Setup

MODEL = "smollm2"
N_SERVERS = 2
SECTION = "## Speculation over a network"


class Network(Page):
    """Measures drafts for a model whose layers are on two RPC servers, near and far: docs/results/network.md."""

    name = "network"
    sections = [SECTION]
    quick = {"delays": "0,2"}

    def add_options(self, parser) -> None:
        parser.set_defaults(n_prompts=12, tokens=64)
        parser.add_argument("--delays", default="0,1,10,50", help="milliseconds that each way takes")
        parser.add_argument("--rpc-server", type=Path, help="llama.cpp's (default: the one beside the program)")

    def measurements(self, setup: Setup) -> list[Measurement]:
        return [
            Measurement(
                f"{MODEL}-{delay:g}ms",
                setup.identity(model=MODEL, servers=N_SERVERS, delay_ms=delay),
                lambda delay=delay: bench(setup, delay),
            )
            for delay in map(float, setup.options.delays.split(","))
        ]

    def write(self, files: dict[str, dict]) -> Written:
        measured = sorted(files.values(), key=lambda file: file["identity"]["delay_ms"])
        head = [
            "# Over a network, measured",
            "",
            *how_measured("network", measured),
            f"`{MODEL}` with its layers on {N_SERVERS} of llama.cpp's RPC servers, half of them on each; all three processes on one machine,",
            "which compute one after the other. What goes between forerun and a server passes a proxy that",
            "holds it back for the *delay*, both ways: a pass takes as long as it computes and about four such delays. The servers",
            "compute with ggml's CPU kernels, for which a second row of a pass costs about as much as the first: without a delay drafts",
            "have nothing to save, and finding that out costs some passes. Other programs ran on the machine meanwhile.",
            f"{span(measured, 'n_prompts')} prompts, answers of up to {span(measured, 'tokens')} tokens, greedy; nothing is known of costs before. Methods take turns.",
            "In brackets where 95 % of resampled sets of prompts lie. Sums of ggml depend on the shape of a pass: [architecture.md](../architecture.md#models-that-libllama-computes).",
            "",
        ]
        return Written([*head, *section(SECTION, table(HEAD, map(row, measured)))])


HEAD = ["delay, each way", "a plain pass", "plain, tokens per second", "`auto`", "speedup", "tokens per pass", "drafted per pass",
        "the same text"]  # fmt: skip


def bench(setup: Setup, delay_ms: float) -> dict:
    options = setup.options
    program = options.rpc_server or Path(options.program).with_name("ggml-rpc-server")
    with ExitStack() as stack:
        servers = [stack.enter_context(RpcServer(program, options.threads)) for _ in range(N_SERVERS)]
        ways = [stack.enter_context(Delay(server.port, delay_ms / 1000)) for server in servers]
        rpc = ",".join(way.endpoint for way in ways)
        return setup.bench(MODEL, ["none", "auto"], "--rpc", rpc, "--split", ",".join("1" * N_SERVERS))


def row(file: dict) -> list[object]:
    methods = file["methods"]
    plain, auto = methods["none"], methods["auto"]
    n_steps = sum(run["steps"] for run in auto["runs"])
    speeds = [f"{1000 * m['tokens'] / decode_ms(m['runs']):.1f}" for m in (plain, auto)]
    pass_ms = decode_ms(plain["runs"]) / sum(run["steps"] for run in plain["runs"])
    return [f"{file['identity']['delay_ms']:g} ms", f"{pass_ms:.1f} ms", *speeds, speed_interval(methods, "auto"),
            f"{auto['tokens_per_step']:.2f}", f"{auto['drafted'] / n_steps:.1f}", same_text(auto)]  # fmt: skip


if __name__ == "__main__":
    Network().main()
