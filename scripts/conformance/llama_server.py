#!/usr/bin/env python3
"""Stands for llama-server in its own tests: starts `forerun serve` with flags that mean the same.

FORERUN_PROGRAM names the program, FORERUN_CONFORMANCE_MODEL the one model there is.
"""

import os
import sys

# By repository or file. Where vectors are asked for, it stands for a model that was made for that.
MODELS = {"ggml-org/test-model-stories260K", "bert-bge-small/ggml-model-f16.gguf"}
SAME = {  # flags with a value
    "--host": "--host", "--port": "--port", "--temp": "--temp", "--seed": "--seed", "--alias": "--alias",
    "--tags": "--tags", "--threads": "-t", "--n-predict": "-n", "--api-key": "--api-key", "--batch-size": "--batch-size",
    "--cors-origins": "--cors-origins", "--chat-template": "--chat-template",
    "--chat-template-file": "--chat-template-file", "--slot-save-path": "--slot-save-path",
    "--reasoning-format": "--reasoning-format", "--reasoning": "--reasoning", "--pooling": "--pooling",
    "-ctk": "--kv-type",
}  # fmt: skip
FLAGS = {"--slots": "--slots", "--no-slots": "--no-slots", "--metrics": "--metrics", "--no-ui": "--no-page", "--verbose": "--verbose"}
# What is always so here, or changes nothing that a test looks at.
WITHOUT = {"--offline", "--jinja", "--no-jinja", "--cont-batching", "--embedding", "--backend_sampling", "--kv-unified", "--no-cache-idle-slots"}
WITHOUT_VALUE = {"--ubatch-size", "-fa", "-ctv", "--cache-ram", "--n-gpu-layers"}


def translated(arguments: list[str]) -> list[str]:
    result: list[str] = []
    n_context, n_parallel, is_unified = 0, 1, "--kv-unified" in arguments
    models = {value for flag, value in zip(arguments, arguments[1:]) if flag in ("--hf-repo", "--hf-file")}
    if models and not models & MODELS:
        sys.exit(f"no such model here: {', '.join(models)}")
    left = iter(arguments)
    for flag in left:
        if flag in ("--hf-repo", "--hf-file", "--model"):
            next(left)
        elif flag == "--ctx-size":
            n_context = int(next(left))
        elif flag == "--parallel":
            n_parallel = int(next(left))
        elif flag in SAME:
            result += [SAME[flag], next(left)]
        elif flag in FLAGS:
            result.append(FLAGS[flag])
        elif flag in WITHOUT_VALUE:
            next(left)
        elif flag not in WITHOUT:
            sys.exit(f"forerun has no such flag: {flag}")
    # Theirs is shared out among the requests, ours is for each.
    if n_context > 0:
        result += ["-c", str(n_context if is_unified else n_context // n_parallel), "--cells", str(n_context)]
    if "--metrics" not in arguments:  # theirs are off unless asked for
        result.append("--no-metrics")
    return [*result, "--parallel", str(n_parallel)]


if __name__ == "__main__":
    program = os.environ["FORERUN_PROGRAM"]
    model = os.environ["FORERUN_CONFORMANCE_MODEL"]
    os.execv(program, [program, "serve", "-m", model, "--no-pin", *translated(sys.argv[1:])])
