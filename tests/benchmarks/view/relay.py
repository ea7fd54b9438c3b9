"""Passes connections on to a server, and counts what goes through."""

from __future__ import annotations

import contextlib
import socket
import threading


class Relay:
    """Listens on a port of its own; down is from the server to who connects."""

    def __init__(self, port: int) -> None:
        self.bytes_down = 0
        self.bytes_up = 0
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                threading.Thread(target=self._pass_up, args=(client, server), daemon=True).start()
                threading.Thread(target=self._pass_down, args=(server, client), daemon=True).start()

    def _pass_up(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError), client, server:
            while data := client.recv(1 << 16):
                self.bytes_up += len(data)
                server.sendall(data)

    def _pass_down(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, server:
            while data := server.recv(1 << 16):
                self.bytes_down += len(data)
                client.sendall(data)
