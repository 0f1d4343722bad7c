package native

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
)

// check says, as a sentence with the next step, why no sandbox can be made here; nil if one can.
func (h *helper) check() error {
	if err := guard.Supported(); err != nil {
		return err
	}
	if err := unix.MountSetattr(-1, "", 0, &unix.MountAttr{}); errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("this kernel cannot make a tree of mounts read-only (mount_setattr): use Linux 5.12 or newer: %w", err)
	}
	return h.checkNamespaces()
}

// checkNamespaces makes, for a moment, the namespaces of a sandbox.
func (h *helper) checkNamespaces() error {
	c := &helperSandbox{group: &group{}}
	var err error
	done := make(chan struct{})
	h.forks <- func() {
		defer close(done)
		var p *os.Process
		// Without a setup socket the first stage ends at once.
		p, err = h.startApart(c, &os.ProcAttr{Dir: "/", Sys: h.attributes(c), Env: []string{}})
		if err == nil {
			_, err = p.Wait()
		}
	}
	<-done
	if err == nil {
		return nil
	}
	return fmt.Errorf("this machine does not let user %d make the namespaces of a sandbox%s: %w", os.Geteuid(), namespaceHint(err), err)
}

// namespaceHint finds the setting that is the likely cause.
func namespaceHint(err error) string {
	for _, s := range []struct{ file, value, hint string }{
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "set the sysctl kernel.unprivileged_userns_clone to 1, or start the server as root"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "set the sysctl kernel.apparmor_restrict_unprivileged_userns to 0, or start the server as root"},
		{"/proc/sys/user/max_user_namespaces", "0", "raise the sysctl user.max_user_namespaces"},
	} {
		if b, readErr := os.ReadFile(s.file); readErr == nil && strings.TrimSpace(string(b)) == s.value {
			return " (" + s.hint + ")"
		}
	}
	if errors.Is(err, syscall.EACCES) {
		return " (is the binary readable and executable for everybody?)"
	}
	return " (in a container, it must be a privileged one)"
}

// enforced lists the protections. reasons explains by controller which limits the cgroups cannot set, and why ids may be shared.
func (h *helper) enforced(reasons map[string]string) []sandbox.Enforcement {
	on := func(what string) sandbox.Enforcement { return sandbox.Enforcement{What: what, On: true} }
	asRoot := func(what, why string) sandbox.Enforcement {
		if h.root {
			return on(what)
		}
		return sandbox.Enforcement{What: what, Why: why}
	}
	ids := asRoot("user ids of its own", "only root can give a sandbox other ids than the server's: start the server as root")
	if why := reasons[idsReason]; why != "" {
		ids.On, ids.Why = false, why
	}
	list := []sandbox.Enforcement{
		on("allow-list of the host's files, read-only"),
		on("no capability, no new privileges"),
		on("system-call filter"),
		on("network of its own, outside connections by policy"),
		ids,
		asRoot("no supplementary groups", "an ordinary user cannot leave its groups: start the server as root"),
		asRoot("server without the helper's privileges", "the server runs as an ordinary user, and so does the helper"),
	}
	for _, l := range []struct{ what, controller string }{{"memory limit", "memory"}, {"process limit", "pids"}, {"fair share of the CPU", "cpu"}} {
		e := sandbox.Enforcement{What: l.what, On: h.cgroups.limits(l.controller), Why: reasons[l.controller]}
		if l.controller == "pids" && !e.On {
			e.Why += " (a limit per user holds instead)"
		}
		list = append(list, e)
	}
	return list
}

// limits reports whether a controller limits sandboxes.
func (c *cgroups) limits(controller string) bool {
	_, v1 := c.roots[controller]
	return v1 || c.v2[controller]
}
