package cli

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/textfile"
)

// caProperty is the line of the settings with the authority that a person trusted at `forerun login`: its certificate in DER and base64.
const caProperty = "CA"

// authorities are the certificate authorities to trust beside the system's for a host, in PEM: from --ca or FORERUN_CA, else the ones that
// belong to a file of settings: the file ca.crt beside it, and what its properties hold. They are for the host in the properties alone.
func (a *app) authorities(host, settings string, properties map[string]string) (string, error) {
	if file := first(a.ca, a.env.Getenv("FORERUN_CA")); file != "" {
		text, err := textfile.Read(file)
		if err != nil {
			return "", wrongf("the certificate authority cannot be read: %v", err)
		}
		return string(text), nil
	}
	if settings == "" || !isSameHost(host, properties["APIHOST"]) {
		return "", nil
	}
	text, _ := os.ReadFile(filepath.Join(filepath.Dir(settings), "ca.crt")) // mostly there is none
	if !x509.NewCertPool().AppendCertsFromPEM(text) {                       // the file may be another program's
		text = nil
	}
	if der, err := base64.StdEncoding.DecodeString(properties[caProperty]); err == nil && len(der) > 0 {
		text = append(text, '\n')
		text = append(text, authorityPEM(der)...)
	}
	return string(text), nil
}

// isSameHost reports whether two texts stand for one API host.
func isSameHost(one, other string) bool {
	a, err := whisk.BaseURL(one)
	b, otherErr := whisk.BaseURL(other)
	return err == nil && otherErr == nil && a == b
}

func authorityPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// isUnknownAuthority reports whether a request failed because no trusted authority has signed the server's certificate.
func isUnknownAuthority(err error) bool {
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}

// isWrongName reports whether a request failed because the server's certificate is for other names.
func isWrongName(err error) bool {
	_, ok := errors.AsType[x509.HostnameError](err)
	return ok
}

// askTrust shows a person the authority of a server that no trusted one has signed, and returns it if the person trusts it.
func (a *app) askTrust(cmd *cobra.Command, host string) (*x509.Certificate, error) {
	authority, err := whisk.Authority(cmd.Context(), host)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(words(cmd), `This machine does not know the authority that signed the certificate of %s:
  %s
  SHA-256 %s
The server's operator sees the same with `+"`forerun cert show`"+`. Trust it for this server? (yes or no) `, host, authority.Subject, whisk.Fingerprint(authority))
	answer, err := readLine(cmd)
	if err != nil {
		return nil, err
	}
	if answer := strings.ToLower(answer); answer != "y" && answer != "yes" {
		return nil, &failure{exitGeneral, "the server is not trusted; nothing was sent to it"}
	}
	return authority, nil
}

// isTyped reports whether a person types what the command reads.
func isTyped(cmd *cobra.Command) bool {
	file, ok := cmd.InOrStdin().(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}
