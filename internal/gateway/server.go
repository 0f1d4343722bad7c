package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"forerun.dev/forerun/internal/seats"
)

// How many connections are enough.
const (
	MaxConns     = 10_000 // of tenants, as at the Redis door
	MaxStrangers = 4096   // who has a key is one until the first request has come: many may come at once
)

// Bounds of what a client may keep open.
const (
	headTime = 10 * time.Second // for the head of a request
	idleTime = 3 * time.Minute  // between requests
	maxHead  = 64 << 10         // bytes of the head

	maxStreams   = 100       // requests at a time on one connection of HTTP/2 or HTTP/3
	connWindow   = 1 << 20   // bytes of bodies that such a connection may send before they are read
	streamWindow = 256 << 10 // bytes of one such body
)

// Server serves a front door to clients, over TLS if it has a configuration for it. With TLS it speaks HTTP/1.1 or HTTP/2, as the client prefers,
// and HTTP/3 after ListenQUIC.
type Server struct {
	*http.Server
	seats *seats.Seats
	quic  *quicServer // nil: there is no HTTP/3
	log   *slog.Logger
}

// NewServer returns the server of a front door's handler, whose connections take seats. secure is nil for plain HTTP/1.1.
func NewServer(handler http.Handler, has *seats.Seats, secure *tls.Config, log *slog.Logger) *Server {
	s := &Server{
		Server: &http.Server{
			Handler: handler, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHead, TLSConfig: secure,
			ConnContext: withConn,
			ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
		seats: has, log: log,
	}
	if secure != nil {
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetHTTP2(true)
		s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: connWindow, MaxReceiveBufferPerStream: streamWindow}
	}
	return s
}

// Serve serves the connections of a listener, and of ListenQUIC's socket, until Shutdown or Close, as http.Server's does.
func (s *Server) Serve(l net.Listener) error {
	l = &seated{l, s.seats}
	if s.TLSConfig == nil {
		return s.Server.Serve(l)
	}
	ended := make(chan error, 2)
	go func() { ended <- s.ServeTLS(l, "", "") }()
	if s.quic != nil {
		go func() { ended <- s.quic.serve() }()
	}
	return <-ended
}

// Shutdown lets the requests under way be answered, as http.Server's does. HTTP/3 has GOAWAY for that.
func (s *Server) Shutdown(ctx context.Context) error {
	var both errgroup.Group
	both.Go(func() error { return s.Server.Shutdown(ctx) })
	if s.quic != nil {
		both.Go(func() error { return s.quic.shutdown(ctx) })
	}
	return both.Wait()
}

// Close ends all connections.
func (s *Server) Close() error {
	err := s.Server.Close()
	if s.quic != nil {
		err = errors.Join(err, s.quic.close())
	}
	return err
}
