package wire

import (
	"context"
	"fmt"

	"forerun.dev/forerun/bench/harness"
)

// callerCode is a function that calls another in three ways, in turn: with requests, with openwhisk.requests, and with prepared bytes on a kept
// connection, which takes no longer than the platform itself.
const callerCode = `
import os, socket, time
import requests
from openwhisk import requests as kept

PATH = "/api/v1/namespaces/_/actions/echo?blocking=true&result=true"

def main(args):
    auth = tuple(os.environ["__OW_API_KEY"].split(":"))
    url = os.environ["__OW_API_HOST"] + PATH
    import base64
    token = base64.b64encode(":".join(auth).encode()).decode()
    line = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {token}\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n"
    text = line.encode() + b'{"x": 1}'
    raw = socket.create_connection(("127.0.0.1", 3233))
    def plain():
        raw.sendall(text)
        answer = b""
        while not answer.endswith(b"}"):
            answer += raw.recv(65536)
    ways = {
        "plain": plain,
        "requests": lambda: requests.post(url, json={"x": 1}, auth=auth).json()["x"],
        "kept": lambda: kept.post(url, json={"x": 1}, auth=auth).json()["x"],
    }
    took = {name: [] for name in ways}
    for turn in range(args["n"]):
        for name in sorted(ways, key=lambda name: (hash(name) + turn) % 3):
            begin = time.perf_counter()
            ways[name]()
            took[name].append((time.perf_counter() - begin) * 1000)
    raw.close()
    return took
`

// calls are calls of another function from a Python function.
func (b *bench) calls(ctx context.Context) error {
	s, err := b.start(ctx, b.binary, "calls", "--speculate", "off")
	if err != nil {
		return err
	}
	defer stop(s)
	c := s.Client(1)
	defer c.Close()
	if err := c.Put(ctx, "caller", map[string]any{"exec": map[string]any{"kind": "python:3", "code": callerCode}}); err != nil {
		return err
	}
	var plain, requests, kept harness.Sample
	for turn := range 1 + max(3, b.count(rounds)) {
		var took struct{ Plain, Requests, Kept []float64 }
		if err := c.Result(ctx, "caller", map[string]int{"n": 100}, &took); err != nil {
			return err
		}
		if len(took.Plain) == 0 || len(took.Requests) == 0 || len(took.Kept) == 0 {
			return fmt.Errorf("the function measured nothing: %+v", took)
		}
		if turn == 0 {
			continue // the first loads and learns
		}
		for of, values := range map[*harness.Sample][]float64{&plain: took.Plain, &requests: took.Requests, &kept: took.Kept} {
			of.Round()
			for _, v := range values {
				of.AddMilliseconds(v)
			}
		}
	}
	const name = "call of a function from a Python function"
	b.beside(name+", openwhisk.requests", "requests", &kept, &requests)
	b.beside(name+", prepared bytes", "requests", &plain, &requests)
	added := (kept.P50() - plain.P50()) / (requests.P50() - plain.P50())
	b.row(harness.Row{
		Case: name, Metric: "time that openwhisk.requests adds, below requests", Unit: "of it", Value: harness.Number(1 - added), Target: harness.Text(">=0.6"),
	})
	return nil
}
