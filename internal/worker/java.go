package worker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"forerun.dev/forerun/internal/sandbox"
)

// Paths in a sandbox of Java. The build makes the runtime if there is a JDK.
const (
	javaFolder = "/forerun/java"
	javaBuilt  = "java" // below Sources.Runtimes
	javaMain   = "dev.forerun.runtime.Main"
)

// javaJars are the runtime's.
var javaJars = [...]string{"forerun-runtime.jar", "gson.jar"}

// minJavaMajor is the oldest Java that the runtime works on.
const minJavaMajor = 17

// javaOptions have the JVM start fast and stay small, and let the runtime reach what it replaces: the environment and
// the descriptor of its socket. The offload agent's function reaches private parts of the JDK by java.lang.invoke.
var javaOptions = [...]string{
	"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
	"--add-opens=java.base/java.io=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED",
	"--add-opens=java.base/java.lang.invoke=ALL-UNNAMED",
}

// discoverJava finds the machine's Javas, if the runtime was built.
func discoverJava(s Sources) map[string]*language {
	folder := filepath.Join(s.Runtimes, javaBuilt)
	for _, jar := range javaJars {
		if _, err := os.Stat(filepath.Join(folder, jar)); err != nil {
			return nil
		}
	}
	names := s.Java
	if names == nil {
		names = []string{"/usr/bin/java", "java"}
	}
	found := versions{name: "java", served: minJavaMajor}
	for _, name := range names {
		path, err := resolve(name)
		if err != nil {
			continue
		}
		home := filepath.Dir(filepath.Dir(path))
		major, err := javaMajor(home)
		if err != nil || major < minJavaMajor {
			continue
		}
		found.add(major, newJava(s.Program, folder, home, path))
	}
	return found.kinds
}

// javaMajor reads the version of the Java whose home this is; its file "release" has a line JAVA_VERSION="17.0.15".
func javaMajor(home string) (int, error) {
	text, err := os.ReadFile(filepath.Join(home, "release"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if version, ok := strings.CutPrefix(line, `JAVA_VERSION="`); ok {
			digits, _, _ := strings.Cut(strings.TrimRight(version, "\"\r\n"), ".")
			return strconv.Atoi(digits)
		}
	}
	return 0, errors.New("it has no version")
}

func newJava(program, folder, home, path string) *language {
	command := append([]string{"java", path}, javaOptions[:]...)
	var classes []string
	for _, jar := range javaJars {
		classes = append(classes, javaFolder+"/"+jar)
	}
	l := newLaunched(program, append(command, "-cp", strings.Join(classes, ":"), javaMain)...)
	l.binds = append(l.binds, sandbox.Bind{Host: folder, Inside: javaFolder})
	if !inBase(home) {
		l.bindFolder(home, home)
	}
	for _, etc := range javaSettings(home) {
		l.bindFolder(etc, etc)
	}
	return l
}

// javaSettings are the folders below /etc in which distributions keep what the files of a Java's home link to.
func javaSettings(home string) []string {
	var folders []string
	for _, name := range []string{"lib/jvm.cfg", "conf/net.properties", "conf/security/java.security"} {
		real, err := filepath.EvalSymlinks(filepath.Join(home, name))
		if err != nil {
			continue
		}
		if below, ok := strings.CutPrefix(real, "/etc/"); ok {
			top, _, _ := strings.Cut(below, "/")
			if folder := "/etc/" + top; !slices.Contains(folders, folder) {
				folders = append(folders, folder)
			}
		}
	}
	return folders
}
