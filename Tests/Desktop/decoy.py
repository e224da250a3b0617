# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Decoys of a desktop's servers: decoy.py with-contexts|without SOCKET...

Each says who it is to whoever asks, and speaks as much of Wayland as a compositor does to whoever wants a socket for an app.
"""
import socket, struct, sys, threading

MANAGER = b"wp_security_context_manager_v1"
with_contexts = sys.argv[1] == "with-contexts"


def event(connection, object, opcode, body):
    connection.sendall(struct.pack("=IHH", object, opcode, len(body) + 8) + body)


def text(words):
    length = struct.unpack_from("=I", words)[0]
    return words[4:4 + length - 1].decode()


def answer(connection, object, opcode, body, fds, said):
    """Answers a request of a client that numbers its objects as Insula does."""
    if (object, opcode) == (1, 0):  # wl_display.sync
        event(connection, struct.unpack("=I", body)[0], 0, bytes(4))
    elif (object, opcode) == (1, 1):  # wl_display.get_registry
        for number, name in enumerate([b"wl_shm", MANAGER] if with_contexts else [b"wl_shm"]):
            padded = name + bytes(4 - len(name) % 4)
            event(connection, 2, 0, struct.pack("=II", number, len(name) + 1) + padded + struct.pack("=I", 1))
    elif (object, opcode) == (2, 0):  # wl_registry.bind
        assert body[:4] == struct.pack("=I", 1) and text(body[4:]) == MANAGER.decode(), body
    elif (object, opcode) == (5, 4):  # wp_security_context_v1.commit
        listener = socket.socket(fileno=fds[0])
        listener.setblocking(True)
        threading.Thread(target=serve, args=(listener, "context of " + " ".join(said)), daemon=True).start()
    elif object == 5:
        said.append(text(body))


def wayland(connection, data, fds):
    said = []
    while data:
        while len(data) >= 8:
            object, opcode, size = struct.unpack_from("=IHH", data)
            if len(data) < size:
                break
            body, data = data[8:size], data[size:]
            answer(connection, object, opcode, body, fds, said)
        more, new, _, _ = socket.recv_fds(connection, 4096, 4)
        fds += new
        data = data + more if more else b""


def talk(connection, name):
    data, fds, _, _ = socket.recv_fds(connection, 4096, 4)
    if data.startswith(b"who"):
        connection.sendall(name.encode())
    else:
        wayland(connection, data, list(fds))


def serve(listener, name):
    while True:
        threading.Thread(target=talk, args=(listener.accept()[0], name), daemon=True).start()


for name in sys.argv[2:]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen()
    threading.Thread(target=serve, args=(listener, name)).start()
