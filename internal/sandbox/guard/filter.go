package guard

import (
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data; the low half of an argument comes first on both architectures.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

const (
	retAllow = unix.SECCOMP_RET_ALLOW
	retHold  = unix.SECCOMP_RET_USER_NOTIF
	retKill  = unix.SECCOMP_RET_KILL_PROCESS
)

// newestCall is the newest system call that the lists know. A newer one gets ENOSYS, so that a C library falls back.
const newestCall = unix.SYS_FILE_SETATTR

// namespaceFlags are the flags of clone that make namespaces.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

func retErrno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

func low(arg uint32) bpf.Instruction  { return bpf.LoadAbsolute{Off: offArgs + 8*arg, Size: 4} }
func high(arg uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offArgs + 8*arg + 4, Size: 4} }
func ret(v uint32) bpf.Instruction    { return bpf.RetConstant{Val: v} }

// when returns v if the accumulator compares so with val, else falls through.
func when(cond bpf.JumpTest, val, v uint32) []bpf.Instruction {
	return []bpf.Instruction{bpf.JumpIf{Cond: cond, Val: val, SkipFalse: 1}, ret(v)}
}

// filter is the program: who calls, how, and then one section for each call that is looked at closely.
func filter() ([]bpf.RawInstruction, error) {
	program := callConvention()
	for _, c := range closeCalls() {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.number, SkipTrue: uint8(len(c.body))})
		program = append(program, c.body...)
	}
	program = append(program, allowing(append(commonCalls(), archCalls()...))...)
	return bpf.Assemble(append(program, ret(retErrno(unix.EPERM))))
}

// callConvention refuses calls of other conventions, and unknown ones. It leaves the call's number in the accumulator.
func callConvention() []bpf.Instruction {
	program := []bpf.Instruction{bpf.LoadAbsolute{Off: offArch, Size: 4}}
	program = append(program, when(bpf.JumpNotEqual, auditArch, retKill)...)
	program = append(program, bpf.LoadAbsolute{Off: offNumber, Size: 4})
	if x32Bit != 0 {
		program = append(program, when(bpf.JumpGreaterOrEqual, x32Bit, retKill)...)
	}
	return append(program, when(bpf.JumpGreaterThan, newestCall, retErrno(unix.ENOSYS))...)
}

// allowing allows calls by their numbers, and falls through for others.
func allowing(numbers []uint32) (program []bpf.Instruction) {
	for _, r := range ranges(numbers) {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: r.first, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: r.last, SkipTrue: 1},
			ret(retAllow))
	}
	return program
}

type span struct{ first, last uint32 }

// ranges joins neighbouring numbers, which makes the program about three times shorter.
func ranges(numbers []uint32) []span {
	slices.Sort(numbers)
	var out []span
	for _, n := range slices.Compact(numbers) {
		if len(out) > 0 && out[len(out)-1].last+1 == n {
			out[len(out)-1].last = n
		} else {
			out = append(out, span{n, n})
		}
	}
	return out
}

// closeCall is a call whose arguments decide; body always returns.
type closeCall struct {
	number uint32
	body   []bpf.Instruction
}

func closeCalls() []closeCall {
	return []closeCall{
		// The pages that the host has set aside count in no sandbox's memory.
		{unix.SYS_MMAP, without(3, unix.MAP_HUGETLB, unix.ENOMEM)},
		{unix.SYS_MEMFD_CREATE, without(1, unix.MFD_HUGETLB, unix.ENOMEM)},
		{unix.SYS_CONNECT, []bpf.Instruction{ret(retHold)}},
		{unix.SYS_LISTEN, []bpf.Instruction{ret(retHold)}},
		{unix.SYS_SENDTO, sendtoBody()},
		{unix.SYS_SENDMSG, noFastOpen(2)},
		{unix.SYS_SENDMMSG, noFastOpen(3)},
		{unix.SYS_SOCKET, socketBody()},
		{unix.SYS_SOCKETPAIR, onlyValues(0, unix.EAFNOSUPPORT, unix.AF_UNIX)},
		{unix.SYS_SETSOCKOPT, setsockoptBody()},
		{unix.SYS_GETSOCKOPT, getsockoptBody()},
		{unix.SYS_IOCTL, ioctlBody()},
		{unix.SYS_SCHED_SETAFFINITY, ofProcess(0)},
		{unix.SYS_SCHED_SETATTR, ofProcess(0)},
		{unix.SYS_SCHED_SETPARAM, ofProcess(0)},
		{unix.SYS_SCHED_SETSCHEDULER, ofProcess(0)},
		{unix.SYS_PRLIMIT64, append(append(unset(2), coreStays(1)...), ofProcess(0)...)}, // without a new limit it only asks
		{unix.SYS_SETRLIMIT, append(coreStays(0), ret(retAllow))},
		{unix.SYS_SETPRIORITY, append(only(0, unix.PRIO_PROCESS), ofProcess(1)...)},
		{unix.SYS_IOPRIO_SET, append(only(0, ioprioProcess), ofProcess(1)...)},
		{unix.SYS_CLONE, without(0, namespaceFlags, unix.EPERM)},
		{unix.SYS_CLONE3, []bpf.Instruction{ret(retErrno(unix.ENOSYS))}}, // its flags are in memory: C libraries fall back to clone
		{unix.SYS_PERSONALITY, onlyValues(0, unix.EPERM, 0, 0x8, 0x20000, 0x20008, 0xffffffff)},
		{unix.SYS_PRCTL, prctlBody()},
		{unix.SYS_INOTIFY_ADD_WATCH, []bpf.Instruction{ret(retHold)}},
		{unix.SYS_FCNTL, fcntlBody()},
		// It would have the disks of all write, and nothing of a sandbox is on any.
		{unix.SYS_SYNC, []bpf.Instruction{ret(retErrno(0))}},
		{unix.SYS_SYNCFS, []bpf.Instruction{ret(retErrno(0))}},
	}
}

// onlyValues allows the listed values of an argument.
func onlyValues(arg uint32, e unix.Errno, values ...uint32) []bpf.Instruction {
	body := []bpf.Instruction{low(arg)}
	for _, v := range values {
		body = append(body, when(bpf.JumpEqual, v, retAllow)...)
	}
	return append(body, ret(retErrno(e)))
}

// without allows a call that has none of some flags.
func without(arg, flags uint32, e unix.Errno) []bpf.Instruction {
	return append(append([]bpf.Instruction{low(arg)}, when(bpf.JumpBitsSet, flags, retErrno(e))...), ret(retAllow))
}

// only goes on if an argument has a value.
func only(arg, value uint32) []bpf.Instruction {
	return append([]bpf.Instruction{low(arg)}, when(bpf.JumpNotEqual, value, retErrno(unix.EPERM))...)
}

// unset allows a call whose argument is no address, else goes on.
func unset(arg uint32) []bpf.Instruction {
	return []bpf.Instruction{
		low(arg),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 3},
		high(arg),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
		ret(retAllow),
	}
}

// held holds a call whose argument is from first to last, else goes on.
func held(arg, first, last uint32) []bpf.Instruction {
	return []bpf.Instruction{
		low(arg),
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: first, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: last, SkipTrue: 1},
		ret(retHold),
	}
}

// ofProcess allows what is for the caller itself, and holds what names a process: what the initializer has, later activations inherit.
func ofProcess(arg uint32) []bpf.Instruction {
	return append(append([]bpf.Instruction{low(arg)}, when(bpf.JumpEqual, 0, retAllow)...), ret(retHold))
}

// coreStays has the limit of core dumps stay as it is, which keeps the host from taking any (noCores): nobody inside misses that.
func coreStays(arg uint32) []bpf.Instruction {
	return append([]bpf.Instruction{low(arg)}, when(bpf.JumpEqual, unix.RLIMIT_CORE, retErrno(0))...)
}

// prctlBody refuses to take off the parent-death signal, by which the initializer dies with the helper, and to keep all others from
// the processors that share a core with the caller's.
func prctlBody() []bpf.Instruction {
	body := append([]bpf.Instruction{low(0)}, when(bpf.JumpEqual, unix.PR_SET_PDEATHSIG, retErrno(unix.EPERM))...)
	return append(append(body, when(bpf.JumpEqual, unix.PR_SCHED_CORE, retErrno(unix.EINVAL))...), ret(retAllow))
}

// fcntlBody refuses to be told what others do with a folder, and to have them wait who open a file: both may be the host's.
func fcntlBody() []bpf.Instruction {
	body := append([]bpf.Instruction{low(1)}, when(bpf.JumpEqual, unix.F_NOTIFY, retErrno(unix.EINVAL))...)
	return append(append(body, when(bpf.JumpEqual, unix.F_SETLEASE, retErrno(unix.EINVAL))...), ret(retAllow))
}

// ioprioProcess is IOPRIO_WHO_PROCESS.
const ioprioProcess = 1

// noFastOpen refuses sends that carry data in a TCP handshake: they would connect without a connect.
func noFastOpen(flags uint32) []bpf.Instruction {
	body := []bpf.Instruction{low(flags)}
	return append(append(body, when(bpf.JumpBitsSet, unix.MSG_FASTOPEN, retErrno(unix.EOPNOTSUPP))...), ret(retAllow))
}

// sendtoBody holds sendto only if it has an address: send(2) is the same call without one.
func sendtoBody() []bpf.Instruction {
	body := []bpf.Instruction{low(3)}
	body = append(body, when(bpf.JumpBitsSet, unix.MSG_FASTOPEN, retErrno(unix.EOPNOTSUPP))...)
	body = append(append(body, low(4)), when(bpf.JumpNotEqual, 0, retHold)...)
	body = append(append(body, high(4)), when(bpf.JumpNotEqual, 0, retHold)...)
	return append(body, ret(retAllow))
}

// equal runs body, which always returns, if the accumulator is val.
func equal(val uint32, body []bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: val, SkipTrue: uint8(len(body))}}, body...)
}

// socketBody allows unix sockets, TCP and UDP over IPv4 and IPv6, and route netlink, which lists the sandbox's interfaces.
func socketBody() []bpf.Instruction {
	body := append([]bpf.Instruction{low(0)}, when(bpf.JumpEqual, unix.AF_UNIX, retAllow)...)
	body = append(body, equal(unix.AF_NETLINK, onlyValues(2, unix.EPROTONOSUPPORT, unix.NETLINK_ROUTE))...)
	body = append(body,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1},
		ret(retErrno(unix.EAFNOSUPPORT)),
		low(1), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf}) // without SOCK_NONBLOCK and SOCK_CLOEXEC
	body = append(body, equal(unix.SOCK_STREAM, onlyValues(2, unix.EPROTONOSUPPORT, 0, unix.IPPROTO_TCP))...)
	body = append(body, equal(unix.SOCK_DGRAM, onlyValues(2, unix.EPROTONOSUPPORT, 0, unix.IPPROTO_UDP))...)
	return append(body, ret(retErrno(unix.EPERM)))
}

// setsockoptBody refuses the options that would let a socket leave another way than the one that was checked, and
// those that open large parts of the kernel.
func setsockoptBody() []bpf.Instruction {
	linger := append([]bpf.Instruction{low(2)}, when(bpf.JumpEqual, unix.SO_LINGER, retHold)...)
	body := []bpf.Instruction{low(1)}
	body = append(body, equal(unix.SOL_SOCKET, append(linger, withoutOptions(unix.SO_PASSPIDFD, unix.SO_BINDTODEVICE, unix.SO_BINDTOIFINDEX)...))...) // as getsockoptBody; by a device on which the address may be another's
	groups := held(2, unix.IP_ADD_MEMBERSHIP, unix.MCAST_MSFILTER)
	body = append(body, equal(unix.IPPROTO_IP, append(groups, withoutOptions(unix.IP_OPTIONS)...))...) // source routes
	groups = append(held(2, unix.IPV6_JOIN_GROUP, unix.IPV6_LEAVE_GROUP), held(2, unix.MCAST_JOIN_GROUP, unix.MCAST_MSFILTER)...)
	body = append(body, equal(unix.IPPROTO_IPV6, append(groups, withoutOptions(unix.IPV6_RTHDR, unix.IPV6_2292RTHDR, unix.IPV6_2292PKTOPTIONS, flowLabels)...))...) // the same in IPv6; labels that all of the host have in common
	body = append(body, equal(unix.IPPROTO_TCP, withoutOptions(unix.TCP_FASTOPEN_CONNECT, unix.TCP_FASTOPEN_NO_COOKIE, unix.TCP_ULP))...)                           // data before the check
	body = append(body, equal(unix.IPPROTO_UDP, withoutOptions(unix.UDP_SEGMENT, unix.UDP_ENCAP))...)                                                               // the relay forwards single datagrams
	return append(body, ret(retAllow))
}

// flowLabels is IPV6_FLOWLABEL_MGR.
const flowLabels = 32

// getsockoptBody refuses a descriptor of the process that has connected a socket, or made it: that would be the helper, or the server. Who
// asks for segments is told that there are none, as who sets them: some send them without setting any.
func getsockoptBody() []bpf.Instruction {
	body := []bpf.Instruction{low(1)}
	body = append(body, equal(unix.SOL_SOCKET, withoutOptions(unix.SO_PEERPIDFD))...)
	body = append(body, equal(unix.IPPROTO_UDP, withoutOptions(unix.UDP_SEGMENT))...)
	return append(body, ret(retAllow))
}

// withoutOptions answers for some options of a socket as if the kernel did not know them.
func withoutOptions(options ...uint32) []bpf.Instruction {
	body := []bpf.Instruction{low(2)}
	for _, o := range options {
		body = append(body, when(bpf.JumpEqual, o, retErrno(unix.ENOPROTOOPT))...)
	}
	return append(body, ret(retAllow))
}

// ioctlBody refuses to type into a terminal, and what changes the network's devices. It holds what asks what they are: on a socket that the
// helper opened it would show the host's.
func ioctlBody() []bpf.Instruction {
	body := []bpf.Instruction{low(1)}
	for _, request := range []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD} {
		body = append(body, when(bpf.JumpEqual, request, retErrno(unix.EPERM))...)
	}
	for _, request := range deviceRequests {
		body = append(body, when(bpf.JumpEqual, request, retHold)...)
	}
	return append(body,
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: lastSocketRequest + 1, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: lastDeviceRequest, SkipTrue: 1},
		ret(retErrno(unix.EPERM)),
		ret(retAllow))
}

// The ioctl requests of sockets: up to the first bound about the socket itself, from there to the second about devices.
const (
	lastSocketRequest = 0x8906 // SIOCGSTAMP
	lastDeviceRequest = 0x8bff // the wireless ones are the last
)
