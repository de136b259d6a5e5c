"""Makes a client."""

from __future__ import annotations

from typing import Optional

from ._settings import Path, Settings, Url
from .client import Client


def connect(
    url: Optional[Url] = None,
    *,
    job: Optional[str] = None,
    trainer: Optional[str] = None,
    user: Optional[str] = None,
    password: Optional[str] = None,
    token: Optional[str] = None,
    creds_file: Optional[Path] = None,
    nkey_file: Optional[Path] = None,
    nkey_public: Optional[str] = None,
    tls_ca: Optional[Path] = None,
    tls_cert: Optional[Path] = None,
    tls_key: Optional[Path] = None,
    connect_timeout: float = 10.0,
    attempt_timeout: float = 5.0,
    timeout: float = 30.0,
    in_flight_bytes: Optional[int] = None,
) -> Client:
    """Connects to the broker and joins a job as a trainer. Close the client, or use it in a ``with``
    block.

    ``url`` is one address, several separated by commas, or a list: ``nats://host:port``, ``tls://…`` or
    ``host:port``, with credentials before an ``@``. The default is ``PSERVER_URL``, else ``NATS_URL``,
    else ``nats://127.0.0.1:4222``. ``job`` is by default ``PSERVER_JOB``, else ``default``. ``trainer``
    is by default ``PSERVER_TRAINER``, else an id that is used only once. Give each process its own id,
    and the same id again after a restart, so that it continues what it was doing. Two processes with
    the same id end each other's sessions; therefore an id from the environment is extended in processes
    that multiprocessing starts, and in processes forked from one that has connected under it.

    Credentials come from the first source that has any: the address; these arguments (a user and its
    password, a token, the file of a JWT user, or the file of an nkey's seed with its public key);
    ``NATS_USER``, ``NATS_PASSWORD``, ``NATS_TOKEN``, ``NATS_CREDS``, ``NATS_NKEY`` and
    ``NATS_NKEY_PUBLIC``. The PEM files for TLS are those of the arguments, else of ``NATS_CA``,
    ``NATS_CERT`` and ``NATS_KEY``.

    Times are in seconds: ``connect_timeout`` is for all attempts to connect together,
    ``attempt_timeout`` for one attempt, ``timeout`` for calls without a timeout of their own. At most
    ``in_flight_bytes`` are in flight to the journals, and as many from the hosts; 16 MiB by default.

    Raises BadName, BadValue or Io for wrong arguments; NoBroker; Denied; NoTls if TLS is asked for and
    the broker offers none, or its certificate is refused; NoHost if no host answers in time;
    LibraryError if ``libpserver`` is missing or of another version.
    """
    client = Client(Settings.of(dict(locals())))
    try:
        client.open()
    except BaseException:
        # A signal may have come just after the client had connected.
        client._discard()
        raise
    return client
