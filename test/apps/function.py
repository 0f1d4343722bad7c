# A random function: it does what SCRIPT says, a list of steps, each a list of its name and its arguments. What it is
# given and what it hears are variables, which texts name in braces and arguments as {"$": NAME}.
import base64
import concurrent.futures
import json
import os
import re
import sys
import time
import urllib.request
import zlib

import openwhisk
import redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None, decode_responses=True)
loaded = 0


class End(Exception):
    pass


def plain(value):
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return repr(value)


def told(value):
    text = re.sub("[0-9a-f]{32}", "*", json.dumps(value, sort_keys=True, default=plain))
    return json.loads(text) if len(text) <= 120 else f"{text[:16]}~{len(text)}~{zlib.crc32(text.encode())}"


def fill(value, v):
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda m: said(v.get(m[1], "")), value)
    if isinstance(value, list):
        return [fill(e, v) for e in value]
    if isinstance(value, dict):
        return v.get(value["$"]) if "$" in value else {k: fill(e, v) for k, e in value.items()}
    return value


def said(value):
    return value if isinstance(value, str) else json.dumps(told(value))


def number(value):
    try:
        return int(float(value))
    except (TypeError, ValueError):
        return zlib.crc32(said(value).encode()) % 1000


def command(v, args):
    try:
        return told(state.execute_command(*fill(args, v)))
    except redis.RedisError as e:
        return "E " + str(e)


def multi(v, commands, transaction=True):
    with state.pipeline(transaction=transaction) as p:
        for args in commands:
            p.execute_command(*fill(args, v))
        return [told(e) if not isinstance(e, Exception) else "E " + str(e) for e in p.execute(raise_on_error=False)]


def watch(v, key, more):
    key = fill(key, v)
    with state.pipeline(transaction=True) as p:
        while True:
            try:
                p.watch(key)
                now = number(p.get(key) or 0) + more
                p.multi()
                p.set(key, now)
                p.execute()
                return now
            except redis.WatchError:
                continue
            except redis.RedisError as e:
                return "E " + str(e)


def listen(v, channel):
    channel = fill(channel, v)
    with state.pubsub() as p:
        p.subscribe(channel)
        p.get_message(timeout=30)
        heard = state.publish(channel, "word")
        message = p.get_message(timeout=30)
        return [heard, message and message["data"]]


def call(name, params):
    try:
        return told(openwhisk.invoke(name, params))
    except openwhisk.OpenWhiskError as e:
        return "E " + re.sub("[0-9a-f]{32}", "*", str(e))


def both(calls):
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(lambda c: call(*c), calls))


def raw(method, path, body, headers):
    """Ask the API itself, and tell its status and its answer."""
    key = base64.b64encode(os.environ["__OW_API_KEY"].encode()).decode()
    request = urllib.request.Request(
        os.environ["__OW_API_HOST"] + "/api/v1/namespaces/_/" + path,
        None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": "Basic " + key, **headers},
        method=method,
    )
    try:
        with urllib.request.urlopen(request) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as e:
        status, text = e.code, e.read()
    document = json.loads(text)
    if isinstance(document, dict):
        for member in [
            "updated",
            "version",
            "start",
            "end",
            "duration",
            "annotations",
            "code",
            "activationId",
            "logs",
            "publish",
            "parameters",  # which may hold where the outside is,
        ]:
            document.pop(member, None)
        document.get("exec", {}).pop("code", None)  # as this does
    return [status, told(document)]


def send(text):
    with urllib.request.urlopen(OUTSIDE, text.encode()) as answer:
        return answer.read().decode()


def once(path):
    with open(path, "a") as f:
        f.write("x")
        return f.tell()


def run(script, v, out):
    global loaded
    for name, *a in script:
        match name:
            case "redis":
                out[a[0]] = v[a[0]] = command(v, a[1:])
            case "multi":
                out[a[0]] = v[a[0]] = multi(v, a[1])
            case "watch":
                out[a[0]] = v[a[0]] = watch(v, a[1], a[2])
            case "listen":
                out[a[0]] = v[a[0]] = listen(v, a[1])
            case "forget":
                out[a[0]] = v[a[0]] = type(v[a[0]]).__name__
            case "if":
                run(a[2] if number(v.get(a[0])) % a[1] == 0 else a[3], v, out)
            case "loop":
                for i in range(a[0]):
                    v["i"] = i
                    run(a[1], v, out)
            case "call":
                out[a[0]] = v[a[0]] = call(a[1], fill(a[2], v))
            case "both":
                out[a[0]] = v[a[0]] = both(fill(a[1], v))
            case "pipe":
                out[a[0]] = v[a[0]] = multi(v, a[1], transaction=False)
            case "raw":
                out[a[0]] = v[a[0]] = raw(a[1], fill(a[2], v), fill(a[3], v), fill(a[4], v))
            case "detach":
                print("began", openwhisk.invoke(a[0], fill(a[1], v), blocking=False))
            case "send":
                out[a[0]] = v[a[0]] = send(fill(a[1], v))
            case "log":
                print(fill(a[0], v))
            case "complain":
                print(fill(a[0], v), file=sys.stderr)
            case "sleep":
                time.sleep(a[0] / 1000)
            case "once":
                out[a[0]] = v[a[0]] = once("/tmp/once")
            case "loaded":
                loaded += 1
                out[a[0]] = v[a[0]] = loaded
            case "set":
                out[a[0]] = v[a[0]] = fill(a[1], v)
            case "big":
                out[a[0]] = v[a[0]] = a[1] * a[2]
            case "return":
                raise End(fill(a[0], v))
            case "raise":
                raise ValueError(fill(a[0], v))
            case "exit":
                os._exit(a[0])
            case "grow":
                v["grown"] = b"x" * a[0]


def place(value):
    """Say where a function is to keep its records: what it is given says it, or the error of one before it."""
    if isinstance(value, str):
        found = re.search("at=([^ ]*)", value)
        return found and found[1]
    if isinstance(value, dict) and isinstance(value.get("at"), str):
        return value["at"]
    parts = (
        [value[key] for key in sorted(value)] if isinstance(value, dict) else value if isinstance(value, list) else []
    )
    return next((found for found in map(place, parts) if found is not None), None)


def main(params):
    v = {"k": 0, **params, "at": place(params)}
    if v["at"] is None:  # who has no records of its own does nothing
        for found in re.findall("[0-9a-f]{32}", json.dumps(params)):
            print("given", found)
        return {"lost": True, "k": v["k"]}
    out = {"at": v["at"], "k": v["k"]}
    for name in KEEP:
        if name in params:
            out[name] = params[name]
    try:
        run(SCRIPT, v, out)
    except End as e:
        return e.args[0]
    return out
