#!/usr/bin/env python3
"""Measures a TCP connection between two hosts.

usage: probe.py trip ADDRESS          the shortest of several round trips, in ms
       probe.py take                  receives data; says "ready" when it listens
       probe.py give ADDRESS BYTES    sends that many bytes: ms until they have arrived
"""

import socket
import sys
import time

PORT = 9000  # no process listens at the next one


def milliseconds(action):
    begin = time.perf_counter()
    action()
    return (time.perf_counter() - begin) * 1e3


def trip(address):
    """A refused connection takes one round trip."""
    def refused():
        with socket.socket() as cable:
            cable.connect_ex((address, PORT + 1))
    print(min(milliseconds(refused) for _ in range(9)))


def take():
    with socket.create_server(("", PORT)) as server:
        print("ready", flush=True)
        cable, _ = server.accept()
        with cable:
            while cable.recv(1 << 20):
                pass
            cable.sendall(b"all")


def give(address, count):
    with socket.create_connection((address, PORT)) as cable:
        def sent():
            cable.sendall(bytes(int(count)))
            cable.shutdown(socket.SHUT_WR)
            if cable.recv(3) == b"":
                sys.exit("the other host has left")
        print(milliseconds(sent))


if __name__ == "__main__":
    {"trip": trip, "take": take, "give": give}[sys.argv[1]](*sys.argv[2:])
