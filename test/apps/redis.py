# What function.py needs of redis-py, for programs that have none.
import os
import re
import socket


class RedisError(Exception):
    pass


class WatchError(RedisError):
    pass


class Connection:
    def __init__(self):
        host, port = re.search("//([^:]*):([0-9]+)", os.environ["REDIS_URL"]).groups()
        self.socket = socket.create_connection((host, int(port)))
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, *args):
        words = [a if isinstance(a, bytes) else str(a).encode() for a in args]
        parts = [b"*%d\r\n" % len(words), *(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)]
        self.socket.sendall(b"".join(parts))

    def receive(self):
        line = self.file.readline()
        if not line:
            raise RedisError("the connection was closed")
        kind, rest = line[:1], line[1:-2]
        match kind:
            case b"-":
                return RedisError(rest.decode())
            case b":":
                return int(rest)
            case b"$":
                return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2].decode()
            case b"*":
                return None if rest == b"-1" else [self.receive() for _ in range(int(rest))]
        return rest.decode()

    def execute_command(self, *args):
        self.send(*args)
        reply = self.receive()
        if isinstance(reply, RedisError):
            raise reply
        return reply


class Pipeline(Connection):
    def __init__(self):
        super().__init__()
        self.queued, self.watching = [], False

    def watch(self, key):
        super().execute_command("WATCH", key)
        self.watching = True

    def multi(self):
        self.watching = False

    def execute_command(self, *args):
        if self.watching:
            return super().execute_command(*args)
        self.queued.append(args)
        return self

    def get(self, key):
        return self.execute_command("GET", key)

    def set(self, key, value):
        return self.execute_command("SET", key, value)

    def execute(self, raise_on_error=True):
        queued, self.queued = self.queued, []
        self.send("MULTI")
        for args in queued:
            self.send(*args)
        self.send("EXEC")
        heard = [self.receive() for _ in range(len(queued) + 1)]
        replies = self.receive()
        if replies is None:
            raise WatchError
        if isinstance(replies, RedisError):  # a command was refused
            if raise_on_error:
                raise replies
            return [e for e in heard[1:] if isinstance(e, RedisError)]
        errors = [e for e in replies if isinstance(e, RedisError)]
        if errors and raise_on_error:
            raise errors[0]
        return replies


class PubSub(Connection):
    def subscribe(self, channel):
        self.send("SUBSCRIBE", channel)

    def get_message(self, timeout):
        self.socket.settimeout(timeout)
        return {"data": self.receive()[2]}


class Redis:
    def __init__(self):
        self.connection = None

    @classmethod
    def from_url(cls, *_, **__):
        return cls()

    def execute_command(self, *args):
        if self.connection is None:
            self.connection = Connection()
        return self.connection.execute_command(*args)

    def publish(self, channel, word):
        return self.execute_command("PUBLISH", channel, word)

    def pipeline(self, transaction):
        return Pipeline()

    def pubsub(self):
        return PubSub()
