package resp_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"forerun.dev/forerun/internal/state/resp"
)

// BenchmarkDurableSet is how many SETs per second, each on disk before its reply, 64 connections get done.
func BenchmarkDurableSet(b *testing.B) {
	const connections = 64
	d := openWith(b, resp.Options{}, nil)
	value := strings.Repeat("v", 100)
	var clients sync.WaitGroup
	b.ResetTimer()
	for n := range connections {
		conn := dial(b, d.address)
		clients.Go(func() {
			reply := make([]byte, 5)
			for i := n; i < b.N; i += connections {
				request(b, conn, fmt.Sprintf("*3\r\n$3\r\nSET\r\n$8\r\n%08d\r\n$100\r\n%s\r\n", i, value), reply)
			}
		})
	}
	clients.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "SETs/s")
}

// BenchmarkGet is one GET over loopback, there and back.
func BenchmarkGet(b *testing.B) {
	d := openWith(b, resp.Options{}, nil)
	conn := dial(b, d.address)
	request(b, conn, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nhello\r\n", make([]byte, 5))
	benchmarkGet(b, conn)
}

// BenchmarkGetFromRedis is the same from a real Redis on a unix socket.
func BenchmarkGetFromRedis(b *testing.B) {
	conn, err := net.Dial("unix", startRedis(b))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	request(b, conn, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nhello\r\n", make([]byte, 5))
	benchmarkGet(b, conn)
}

func benchmarkGet(b *testing.B, conn net.Conn) {
	b.Helper()
	reply := make([]byte, len("$5\r\nhello\r\n"))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		request(b, conn, "*2\r\n$3\r\nGET\r\n$1\r\na\r\n", reply)
	}
}

// BenchmarkSetInProcess is one SET that is on disk when it returns, without a door.
func BenchmarkSetInProcess(b *testing.B) {
	d := openWith(b, resp.Options{}, nil)
	s := session{d.store, "bench"}
	args := [][]byte{[]byte("SET"), []byte("a"), []byte("hello")}
	b.ReportAllocs()
	for range b.N {
		_, v, err := s.Do(context.Background(), args)
		if err == nil {
			err = s.Durable(context.Background(), v)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func dial(b *testing.B, address string) net.Conn {
	b.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return conn
}

func request(b *testing.B, conn net.Conn, command string, reply []byte) {
	_, err := conn.Write([]byte(command))
	for n := 0; n < len(reply) && err == nil; {
		var m int
		m, err = conn.Read(reply[n:])
		n += m
	}
	if err != nil {
		b.Error(err)
	}
}
