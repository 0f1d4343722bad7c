package service

import (
	"testing"

	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/state/resp"
)

// TestDoorsLeaveFiles: connections of clients take no more than five sixteenths of the files, of the six that sandboxes leave, however few there are.
func TestDoorsLeaveFiles(t *testing.T) {
	for _, files := range []int{256, 1024, 4096, 20_000, 65_536, 524_288} {
		has := roomIn(files)
		if all := has.http + has.httpStrangers + has.redis + has.redisStrangers; all > files*5/16 || min(has.http, has.httpStrangers, has.redis, has.redisStrangers) < 1 {
			t.Errorf("of %d files the doors take %d: %+v", files, all, has)
		}
	}
	if has := roomIn(1 << 20); has != (room{gateway.MaxConns, gateway.MaxStrangers, resp.MaxConns, resp.MaxStrangers}) {
		t.Errorf("with many files they have %+v", has)
	}
}
