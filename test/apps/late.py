# A function that counts, and on some inputs takes too long. It loads little and asks for little: on a busy machine,
# too, it comes as far within its time.
import os
import socket
import time
from urllib.parse import urlsplit


def main(args):
    at, k = args.get("at"), args.get("k")
    if not isinstance(at, str):
        return {"lost": True}
    url, key = urlsplit(os.environ["REDIS_URL"]), f"{at}:n0".encode()
    with socket.create_connection((url.hostname, url.port)) as state:
        state.sendall(b"*2\r\n$4\r\nINCR\r\n$%d\r\n%s\r\n" % (len(key), key))
        reply = state.recv(1000)
    if isinstance(k, int) and k % 2 == 0:
        time.sleep(100)
    return {"at": at, "k": k, "p": reply.decode()}
