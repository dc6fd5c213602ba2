"""Serves the local model over HTTP on loopback, in the OpenAI form: `local_server SLOTS`. Prints its address.

It ends when its standard input closes. The model is the one of `Model("local")`: SmolLM2-135M-Instruct.
"""

import importlib
import os
import sys
from pathlib import Path

from headrace.models.protocols.local import _model_file

_CONTEXT = 2048


def main(slots: int) -> None:
    # Threads that wait for each other sleep: on a busy machine, spinning makes answers several times slower.
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(Path(_model_file(None)))
    params.n_parallel = slots
    params.n_ctx = _CONTEXT * slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = os.cpu_count() or 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.verbosity = 1
    params.fit_params = False
    params.warmup = False
    params.cache_ram_mib = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
