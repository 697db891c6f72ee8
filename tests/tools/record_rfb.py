#!/usr/bin/env python3
"""Record both directions of one RFB session.

Listens on a TCP loopback port (or a unix socket), connects to the server's unix socket for the first
client, and copies bytes unchanged until either side closes. The session is saved as three files:

  client.bin   everything the client sent, from the very first byte
  server.bin   everything the server sent, from the very first byte
  order.txt    the order in which the two met: one line a chunk, "c N" or "s N"

Two options change what the client experiences, never what is recorded: `--version 3.7` answers for a
server of an older protocol (the server still sees what the client answers), and `--rate N` lets the
server's bytes through at N kilobits a second, so that chunks are small and the client falls behind.
"""

import argparse
import os
import selectors
import signal
import socket
import sys
import time


def listen(address):
    if address.startswith("/"):
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
    else:
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", int(address)))
    server.listen(1)
    return server


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("listen", help="a TCP port on 127.0.0.1, or the path of a unix socket")
    parser.add_argument("server", help="the path of the RFB server's unix socket")
    parser.add_argument("directory", help="where the recording goes")
    parser.add_argument("--version", help="protocol version to show to the client, as 3.7")
    parser.add_argument("--rate", type=float, help="kilobits a second from the server to the client")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

    os.makedirs(options.directory, exist_ok=True)
    accepting = listen(options.listen)
    client, _ = accepting.accept()
    accepting.close()
    server = socket.socket(socket.AF_UNIX)
    server.connect(options.server)

    first = True
    with (
        open(os.path.join(options.directory, "client.bin"), "wb") as from_client,
        open(os.path.join(options.directory, "server.bin"), "wb") as from_server,
        open(os.path.join(options.directory, "order.txt"), "w") as order,
        selectors.DefaultSelector() as ready,
    ):
        ready.register(client, selectors.EVENT_READ, (server, from_client, "c"))
        ready.register(server, selectors.EVENT_READ, (client, from_server, "s"))
        while True:
            for key, _ in ready.select():
                other, saved, letter = key.data
                size = 1024 if letter == "s" and options.rate else 65536
                try:
                    data = key.fileobj.recv(size)
                except ConnectionResetError:
                    data = b""
                if not data:
                    return
                if letter == "s" and first and options.version:
                    major, minor = options.version.split(".")
                    data = f"RFB {int(major):03}.{int(minor):03}\n".encode() + data[12:]
                first = first and letter != "s"
                saved.write(data)
                order.write(f"{letter} {len(data)}\n")
                if letter == "s" and options.rate:
                    time.sleep(len(data) * 8 / (options.rate * 1000))
                try:
                    other.sendall(data)
                except (BrokenPipeError, ConnectionResetError):
                    return


if __name__ == "__main__":
    main()
