"""Connecting to a Dask scheduler, or starting one inside this process; what goes wrong is one sentence."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster

from reprocheck.engine.dask import task
from reprocheck.engine.dask.parcels import sources_digest
from reprocheck.engine.dask.places import GPU, WorkerInfo
from reprocheck.errors import HarnessError, UsageError

__all__ = ["connected", "refuse_strangers", "workers_of"]

VERSION = version("reprocheck")
CONNECT_SECONDS = 10
WORKER_SECONDS = 60.0
"""How long to wait for the first Dask worker."""


@contextlib.contextmanager
def connected(
    scheduler: str | None, scratch: Path, *, jobs: int, gpus: int, note: Callable[[str], None]
) -> Iterator[Client]:
    """A client of `scheduler` with at least one Dask worker; without one, of a cluster inside this process.

    That cluster takes no work from outside: nobody else on the machine can run code through it. `jobs` and `gpus` are
    what it offers, and `scratch` is where it keeps its files. Raises `UsageError` for an address that is none and
    `HarnessError` when nobody answers there.
    """
    with _quiet(), contextlib.ExitStack() as stack:
        if scheduler is None:
            # Without pages of information there is nothing to listen for.
            stack.enter_context(
                dask.config.set({"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []})
            )
            scheduler = stack.enter_context(
                LocalCluster(
                    n_workers=1,
                    threads_per_worker=jobs,
                    processes=False,
                    memory_limit=0,
                    local_directory=str(scratch),
                    dashboard_address="127.0.0.1:0",
                    worker_dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                    resources={GPU: gpus} if gpus else None,
                )
            ).scheduler_address
        client = stack.enter_context(_client(scheduler))
        _await_worker(client, scheduler, note)
        yield client


def workers_of(client: Client) -> tuple[WorkerInfo, ...]:
    """The Dask workers there are now, by address."""
    try:
        # Not `scheduler_info()`: the copy it answers from is now and then replaced by one without workers.
        found = client.sync(client.scheduler.identity)["workers"]
    except Exception as error:
        raise HarnessError(
            f"the Dask scheduler does not answer any more ({_told(error)}); what is done is kept: --resume"
        ) from error
    return tuple(
        WorkerInfo(
            address=address,
            name=str(facts["name"]),
            host=str(facts["host"]),
            threads=int(facts["nthreads"]),
            gpus=int(facts["resources"].get(GPU, 0)),
        )
        for address, facts in sorted(found.items())
    )


def refuse_strangers(client: Client, addresses: list[str]) -> None:
    """Raise `UsageError` when a Dask worker has no reprocheck, or another one than we are."""
    ours = sources_digest()
    for address, answer in client.run(task.identity, workers=addresses, on_error="return").items():
        if isinstance(answer, OSError):
            continue  # it went while we asked
        if isinstance(answer, Exception):
            raise UsageError(
                f"the Dask worker {address} cannot load reprocheck ({_told(answer)}); "
                "install the version that asks, with its `dask` extra, in the workers' environment"
            )
        if answer.get("sources") != ours:
            raise UsageError(
                f"the Dask worker {address} has another reprocheck ({answer.get('version')}, here {VERSION}, by other "
                "sources); install the same one on both sides and restart the worker"
            )


def _client(address: str) -> Client:
    file = Path(address)
    place: dict[str, Any] = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
    if "scheduler_file" in place and not file.is_file():
        raise UsageError(
            f"the scheduler file `{address}` isn't there; start `dask scheduler --scheduler-file {address}`"
        )
    try:
        return Client(**place, timeout=CONNECT_SECONDS, set_as_default=False, name="reprocheck")
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"`{address}` is no address of a Dask scheduler ({error}); --scheduler takes e.g. tcp://host:8786"
        ) from error
    except OSError as error:
        raise HarnessError(
            f"no Dask scheduler answers at `{address}` within {CONNECT_SECONDS} s; "
            "check the address given with --scheduler, and that it runs"
        ) from error


def _await_worker(client: Client, address: str, note: Callable[[str], None]) -> None:
    deadline = time.monotonic() + WORKER_SECONDS
    told = False
    while not workers_of(client):
        if time.monotonic() > deadline:
            raise HarnessError(
                f"no Dask worker has joined `{address}` within {WORKER_SECONDS:.0f} s; "
                f"start one: `dask worker {address}`"
            )
        if not told:
            note(f"waiting for a Dask worker at {address}")
            told = True
        time.sleep(0.2)


def _told(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What Dask logs would stand between the lines of our progress; its troubles reach the user as our sentences."""
    loggers = [
        logging.getLogger(name) for name in list(logging.root.manager.loggerDict) if name.startswith("distributed")
    ]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
