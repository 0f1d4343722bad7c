package service

import (
	"context"
	"net"

	"forerun.dev/forerun/internal/worker"
)

func serveState(ctx context.Context, c net.Conn, s *worker.Session) { c.Close() }
