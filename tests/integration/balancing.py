"""What a Service does for replicas outside of a cluster."""

import contextlib
import socket
import threading
from typing import Final

_CHUNK: Final = 1 << 16


class Balancer:
    """A Service in front of replicas: each connection goes to the next one that takes it."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = ports
        self._turn = 0
        self._threads: list[threading.Thread] = []
        self._server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._server.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Take no connections any more; those that there are end with the replicas."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in (self._accepting, *self._threads):
            thread.join(30)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(client,), daemon=True))
                self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            backend = self._connected()
            if backend is None:
                return
            with backend:
                up = threading.Thread(target=_copy, args=(client, backend), daemon=True)
                up.start()
                _copy(backend, client)
                up.join()

    def _connected(self) -> socket.socket | None:
        # Others take their turn meanwhile: each has to try all.
        self._turn = turn = self._turn + 1
        for number in range(len(self._ports)):
            port = self._ports[(turn + number) % len(self._ports)]
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", port))
        return None


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
