"""Invokes an action over new connections, when a line says how: `openwhisk` or `requests`. It prints milliseconds.

Usage: client.py URL UUID:KEY CA-FILE PATH. The import of a package is not measured.
"""

import json
import os
import sys
import time

url, auth, ca, path = sys.argv[1:]
os.environ.update(FORERUN_APIHOST=url, FORERUN_AUTH=auth, FORERUN_CA=ca)

import requests  # noqa: E402
from openwhisk import http3  # noqa: E402
from openwhisk import requests as kept  # noqa: E402

for line in sys.stdin:
    begin = time.perf_counter()
    if line.strip() == "openwhisk":
        answer = kept.post(path, json={"x": 1})
        took = time.perf_counter() - begin
        http3._pool.end()  # it waits for the next connection's ticket
    else:
        answer = requests.post(url + path, json={"x": 1}, auth=tuple(auth.split(":")), verify=ca, timeout=60)
        took = time.perf_counter() - begin
    if answer.json() != {"x": 1}:
        sys.exit(f"the answer is {answer.status_code}: {answer.text}")
    print(json.dumps(took * 1000), flush=True)
