package admin

import (
	"net/http"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

// getCertificate answers with what there is to say of the server's certificate.
func (a *API) getCertificate(w http.ResponseWriter, _ *http.Request) error {
	if a.Certificate == nil {
		return forerun.Errorf(forerun.NotFound, "", "This server has no certificate, as it listens on the loopback only, without TLS. Start it with --tls on, or with another --listen.")
	}
	gateway.WriteJSON(w, http.StatusOK, a.Certificate.Info())
	return nil
}

// renewCertificate makes another certificate, or reads its files again, and answers as getCertificate.
func (a *API) renewCertificate(w http.ResponseWriter, r *http.Request) error {
	if a.Certificate != nil {
		if err := a.Certificate.Renew(); err != nil {
			return err
		}
	}
	return a.getCertificate(w, r)
}
