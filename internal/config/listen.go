package config

import (
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// address checks an address to listen on, and returns it with "localhost" resolved. Without a host it stands for all addresses of the machine.
func address(value string) (string, error) {
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return "", forerun.Errorf(forerun.Invalid, "", "%q is not an address: write HOST:PORT, like 127.0.0.1:3233.", value)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", forerun.Errorf(forerun.Invalid, "", "%q is not a port: write a number from 0 to 65535.", port)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" {
		return "", forerun.Errorf(forerun.Invalid, "", "%q is not an IP address: write one of this machine's, like 127.0.0.1:%s, or :%s for all.", host, port, port)
	}
	return net.JoinHostPort(host, port), nil
}

func setListen(c *Config, value string) (err error) {
	c.Listen, err = address(value)
	return err
}

func setWebListen(c *Config, value string) error { return setFurther(&c.WebListen, value) }

func setRedisListen(c *Config, value string) error { return setFurther(&c.RedisListen, value) }

func setConsoleListen(c *Config, value string) error { return setFurther(&c.ConsoleListen, value) }

func setMetricsListen(c *Config, value string) error { return setFurther(&c.MetricsListen, value) }

// setFurther sets an address that may be empty.
func setFurther(to *string, value string) (err error) {
	if *to = ""; value != "" {
		*to, err = address(value)
	}
	return err
}

func setTLS(c *Config, value string) error {
	if value != "auto" && value != "on" {
		return forerun.Errorf(forerun.Invalid, "", "%q is not a setting of TLS: write auto or on. Off the loopback TLS cannot be switched off.", value)
	}
	c.TLS = value == "on"
	return nil
}

func setHTTP3(c *Config, value string) error {
	if value != "on" && value != "off" {
		return forerun.Errorf(forerun.Invalid, "", "%q is not a setting of HTTP/3: write on or off.", value)
	}
	c.HTTP3 = value == "on"
	return nil
}

func setEarlyData(c *Config, value string) error {
	if value != "safe" && value != "off" {
		return forerun.Errorf(forerun.Invalid, "", "%q is not a setting of early data: write safe or off.", value)
	}
	c.EarlyData = value == "safe"
	return nil
}

// dnsName is a name of a host, or of all hosts of a domain.
var dnsName = regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

// IsDNSName reports whether a certificate can be for a name.
func IsDNSName(name string) bool { return len(name) < 254 && dnsName.MatchString(name) }

func setTLSNames(c *Config, value string) error {
	c.TLSNames = nil
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name == "" {
			continue
		}
		if ip, err := netip.ParseAddr(name); !IsDNSName(name) && (err != nil || ip.Zone() != "") {
			return forerun.Errorf(forerun.Invalid, "", "%q is neither a DNS name nor an address: write a list like functions.example.org,192.168.1.5.", name)
		}
		c.TLSNames = append(c.TLSNames, name)
	}
	return nil
}

func setTLSCert(c *Config, value string) error { return setFile(&c.TLSCert, value) }

func setTLSKey(c *Config, value string) error { return setFile(&c.TLSKey, value) }

// setFile sets a path that may be empty.
func setFile(to *string, value string) (err error) {
	if *to = value; value != "" {
		*to, err = filepath.Abs(value)
	}
	return err
}
