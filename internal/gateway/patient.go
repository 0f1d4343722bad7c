package gateway

import (
	"net/http"
	"slices"
	"time"
)

// patient is the answer to a request that shares its connection with others. A client that does not read it ends this request alone: the
// deadline of the connection (see conn.Write) does not end while the client reads other answers.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

func newPatient(w http.ResponseWriter) *patient {
	return &patient{w, http.NewResponseController(w)}
}

// Unwrap serves http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// begin gives the client partTime from now on.
func (p *patient) begin() { _ = p.control.SetWriteDeadline(time.Now().Add(partTime)) } // a writer in a test has none

// end lets the handler take its time until it writes again.
func (p *patient) end() { _ = p.control.SetWriteDeadline(time.Time{}) }

// Write implements io.Writer.
func (p *patient) Write(b []byte) (sent int, err error) {
	defer p.end()
	for part := range slices.Chunk(b, answerPart) {
		p.begin()
		n, err := p.ResponseWriter.Write(part)
		if sent += n; err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// FlushError serves http.ResponseController.
func (p *patient) FlushError() error {
	p.begin()
	defer p.end()
	return p.control.Flush()
}
