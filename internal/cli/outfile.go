package cli

import "github.com/spf13/pflag"

// outFile is the value of a flag that names a file to write; "": the flag was not given.
type outFile string

// outFileFlag adds such a flag.
func outFileFlag(flags *pflag.FlagSet, name, usage string) *outFile {
	file := new(outFile)
	flags.Var(file, name, usage)
	return file
}

// Set implements pflag.Value.
func (f *outFile) Set(name string) error {
	switch name {
	case "":
		return wrongf("it takes the name of a file")
	case "-":
		return wrongf("it takes the name of a file, and - is not one: write /dev/stdout for standard output")
	}
	*f = outFile(name)
	return nil
}

// String implements pflag.Value.
func (f *outFile) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *outFile) Type() string { return "FILE" }
