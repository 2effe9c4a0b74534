"""How to reach a Ray cluster, or to start one."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from typing import Any

from polysift.runtime.parallel import usable_jobs

ANSWER = 5.0
"""Seconds within which a cluster must answer."""


def load_ray() -> Any:
    """Return Ray, or say how to install it."""
    try:
        ray = import_module("ray")
        import_module("ray.util.scheduling_strategies")
    except ImportError as error:
        raise ImportError(
            "engine='ray' needs Ray. Install it with: pip install 'polysift[ray]'"
        ) from error
    return ray


def connect(ray: Any, address: str | None, cpus: int | None) -> None:
    """Connect to a cluster, or start one with so many CPUs."""
    if ray.is_initialized():
        _refuse_another(ray, address)
        return
    # Errors of tasks that nobody waits for any more are no news: the first was raised.
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    address = address or os.environ.get("RAY_ADDRESS") or None
    found = None if address == "local" else find(address)
    if found is not None:
        where, listening = found
        _show_token()
        try:
            with listening():
                ray.init(address=where, **options)
        except ConnectionError as error:
            raise ConnectionError(
                f"{str(error).rstrip('.')}, though something answers there. If it wants a token, "
                "set RAY_AUTH_MODE=token, and put the token where Ray looks for it."
            ) from error
    else:
        own = {"num_cpus": cpus or usable_jobs(-1), "include_dashboard": False}
        with on_loopback():
            ray.init(address="local", **own, **options)


def _refuse_another(ray: Any, address: str | None) -> None:
    """Raise if an address is not that of the cluster that this process is connected to."""
    if address in (None, "auto", "local") or "://" in address:
        return
    here = ray.get_runtime_context().gcs_address
    found = find(address)
    if found is None or _numbers(found[0]) != _numbers(here):
        raise ConnectionError(
            f"address={address!r}, but this process is connected to the Ray cluster at {here}. "
            "Leave the address out to use that one, or call ray.shutdown() first."
        )


def _numbers(address: str) -> tuple[str, str]:
    """Return the host of an address as a number, where its name is known, and the port."""
    host, port = address.rsplit(":", 1)
    with suppress(OSError):
        host = socket.gethostbyname(host.strip("[]"))
    return host, port


def _show_token() -> None:
    """Let Ray show the token that this user has, as a cluster that was started with it wants."""
    with suppress(ImportError, AttributeError):
        setup = import_module("ray._private.authentication.authentication_token_setup")
        with _quiet("ray"):
            setup.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Have a logger tell errors only."""
    chosen = logging.getLogger(name)
    before = chosen.level
    chosen.setLevel(logging.ERROR)
    try:
        yield
    finally:
        chosen.setLevel(before)


def find(address: str | None) -> tuple[str, Callable[[], Any]] | None:
    """Return where a cluster answers and how to speak to it, or None if there is and need be none.

    Ray itself would knock at the door of one that has gone for a quarter of an hour.
    """
    if address is not None and "://" in address:
        return address, nullcontext
    services: Any = import_module("ray._private.services")
    failure: Exception | None = None
    for listening in (nullcontext, on_loopback):
        try:
            with listening(), _quiet("ray"):
                found = services.canonicalize_bootstrap_address(address)
            if found is None:
                return None
            host, port = found.rsplit(":", 1)
            socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()
            return found, listening
        except (OSError, ValueError) as error:
            failure = failure or error
    if address is None:
        return None
    raise ConnectionError(
        f"No Ray cluster answers at address={address!r} ({str(failure).rstrip('.')}). Start one "
        "with 'ray start --head', or leave the address out to have a local one."
    ) from failure


@contextmanager
def on_loopback() -> Iterator[None]:
    """Let a new cluster listen on loopback alone: no other machine has anything to do with it."""
    constants: Any = import_module("ray._private.ray_constants")
    before = getattr(constants, "ENABLE_RAY_CLUSTER", None)
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before
