package guard

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// verdictOf runs the filter as the kernel would. The kernel reads words in its own order, the VM big-endian: each
// word is laid out for the VM.
func verdictOf(t *testing.T, arch, number uint32, args ...uint64) uint32 {
	t.Helper()
	return verdictBy(t, filter, arch, number, args...)
}

func verdictBy(t *testing.T, filter func() ([]bpf.RawInstruction, error), arch, number uint32, args ...uint64) uint32 {
	t.Helper()
	raw, err := filter()
	if err != nil {
		t.Fatal(err)
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the filter holds an instruction that cannot be disassembled")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offNumber:], number)
	binary.BigEndian.PutUint32(data[offArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offArgs+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[offArgs+8*i+4:], uint32(a>>32))
	}
	v, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(v)
}

func TestFilter(t *testing.T) {
	eperm, nosys := retErrno(unix.EPERM), retErrno(unix.ENOSYS)
	for _, c := range []struct {
		what   string
		number uint32
		args   []uint64
		want   uint32
	}{
		{"read", unix.SYS_READ, nil, retAllow},
		{"openat", unix.SYS_OPENAT, nil, retAllow},
		{"sendmsg", unix.SYS_SENDMSG, nil, retAllow},
		{"connect", unix.SYS_CONNECT, nil, retHold},
		{"listen", unix.SYS_LISTEN, nil, retHold},
		{"send", unix.SYS_SENDTO, []uint64{3, 1, 1, 0, 0, 0}, retAllow},
		{"sendto low address", unix.SYS_SENDTO, []uint64{3, 1, 1, 0, 0x1000, 16}, retHold},
		{"sendto high address", unix.SYS_SENDTO, []uint64{3, 1, 1, 0, 0x7f00_0000_0000, 16}, retHold},
		{"send with fast open", unix.SYS_SENDTO, []uint64{3, 1, 1, unix.MSG_FASTOPEN, 0, 0}, retErrno(unix.EOPNOTSUPP)},
		{"sendmmsg with fast open", unix.SYS_SENDMMSG, []uint64{3, 1, 1, unix.MSG_FASTOPEN}, retErrno(unix.EOPNOTSUPP)},
		{"fork", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, retAllow},
		{"thread", unix.SYS_CLONE, []uint64{0x3d0f00}, retAllow},
		{"clone into a time namespace is no such flag", unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, eperm},
		{"clone with a network", unix.SYS_CLONE, []uint64{unix.CLONE_NEWNET}, eperm},
		{"clone3", unix.SYS_CLONE3, nil, nosys},
		{"tcp", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}, retAllow},
		{"tcp by number", unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP}, retAllow},
		{"udp", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK, unix.IPPROTO_UDP}, retAllow},
		{"unix", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0}, retAllow},
		{"udp by stream", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_UDP}, retErrno(unix.EPROTONOSUPPORT)},
		{"raw", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW}, eperm},
		{"route netlink", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE}, retAllow},
		{"netlink of sockets", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG}, retErrno(unix.EPROTONOSUPPORT)},
		{"generic netlink", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_GENERIC}, retErrno(unix.EPROTONOSUPPORT)},
		{"a pair of netlink", unix.SYS_SOCKETPAIR, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, 0}, retErrno(unix.EAFNOSUPPORT)},
		{"unix pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, retAllow},
		{"tipc pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC, unix.SOCK_STREAM, 0}, retErrno(unix.EAFNOSUPPORT)},
		{"nodelay", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_TCP, unix.TCP_NODELAY}, retAllow},
		{"linger", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_LINGER}, retHold},
		{"option of TCP by its number", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_TCP, unix.SO_LINGER}, retAllow},
		{"reuse", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_REUSEADDR}, retAllow},
		{"fast open", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT}, retErrno(unix.ENOPROTOOPT)},
		{"source route", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IP, unix.IP_OPTIONS}, retErrno(unix.ENOPROTOOPT)},
		{"source route in IPv6", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_2292PKTOPTIONS}, retErrno(unix.ENOPROTOOPT)},
		{"way by a device", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_BINDTODEVICE}, retErrno(unix.ENOPROTOOPT)},
		{"way by a device's number", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX}, retErrno(unix.ENOPROTOOPT)},
		{"segments", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_UDP, unix.UDP_SEGMENT}, retErrno(unix.ENOPROTOOPT)},
		{"segments asked for", unix.SYS_GETSOCKOPT, []uint64{3, unix.IPPROTO_UDP, unix.UDP_SEGMENT}, retErrno(unix.ENOPROTOOPT)},
		{"a group", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP}, retHold},
		{"a group of one sender", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IP, unix.IP_ADD_SOURCE_MEMBERSHIP}, retHold},
		{"a group of either protocol", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IP, unix.MCAST_JOIN_GROUP}, retHold},
		{"senders to a group", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IP, unix.MCAST_MSFILTER}, retHold},
		{"what is before the groups", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP - 1}, retAllow},
		{"what is behind the groups", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IP, unix.MCAST_MSFILTER + 1}, retAllow},
		{"a group of IPv6", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP}, retHold},
		{"a group of either protocol, in IPv6", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IPV6, unix.MCAST_JOIN_SOURCE_GROUP}, retHold},
		{"a label in IPv6", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IPV6, flowLabels}, retErrno(unix.ENOPROTOOPT)},
		{"IPv6 alone", unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY}, retAllow},
		{"peer", unix.SYS_GETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_PEERCRED}, retAllow},
		{"option of TCP", unix.SYS_GETSOCKOPT, []uint64{3, unix.IPPROTO_TCP, unix.SO_PEERPIDFD}, retAllow},
		{"peer's process", unix.SYS_GETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_PEERPIDFD}, retErrno(unix.ENOPROTOOPT)},
		{"senders' processes", unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_PASSPIDFD}, retErrno(unix.ENOPROTOOPT)},
		{"terminal size", unix.SYS_IOCTL, []uint64{1, unix.TIOCGWINSZ}, retAllow},
		{"bytes to read", unix.SYS_IOCTL, []uint64{1, unix.TIOCINQ}, retAllow},
		{"mark", unix.SYS_IOCTL, []uint64{1, unix.SIOCATMARK}, retAllow},
		{"typing", unix.SYS_IOCTL, []uint64{1, unix.TIOCSTI}, eperm},
		{"interfaces", unix.SYS_IOCTL, []uint64{1, unix.SIOCGIFCONF}, retHold},
		{"an interface's size", unix.SYS_IOCTL, []uint64{1, unix.SIOCGIFMTU}, retHold},
		{"an interface's settings", unix.SYS_IOCTL, []uint64{1, unix.SIOCSIFFLAGS}, eperm},
		{"an interface's driver", unix.SYS_IOCTL, []uint64{1, unix.SIOCETHTOOL}, eperm},
		{"routes", unix.SYS_IOCTL, []uint64{1, unix.SIOCADDRT}, eperm},
		{"name a thread", unix.SYS_PRCTL, []uint64{unix.PR_SET_NAME}, retAllow},
		{"parent-death signal", unix.SYS_PRCTL, []uint64{unix.PR_SET_PDEATHSIG}, eperm},
		{"personality", unix.SYS_PERSONALITY, []uint64{0xffffffff}, retAllow},
		{"personality of old", unix.SYS_PERSONALITY, []uint64{0x0400000}, eperm},
		{"own limit", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE, 0x1000, 0}, retAllow},
		{"another's limit asked for", unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_NOFILE, 0, 0x1000}, retAllow},
		{"another's limit", unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_NOFILE, 0x1000, 0}, retHold},
		{"another's limit at a high address", unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_NOFILE, 0x7f00_0000_0000, 0}, retHold},
		{"own limit at a high address", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE, 0x7f00_0000_0000, 0}, retAllow},
		{"own processors", unix.SYS_SCHED_SETAFFINITY, []uint64{0, 8, 0x1000}, retAllow},
		{"another's processors", unix.SYS_SCHED_SETAFFINITY, []uint64{7, 8, 0x1000}, retHold},
		{"another's policy", unix.SYS_SCHED_SETSCHEDULER, []uint64{7, 3, 0x1000}, retHold},
		{"another's parameters", unix.SYS_SCHED_SETPARAM, []uint64{7, 0x1000}, retHold},
		{"another's attributes", unix.SYS_SCHED_SETATTR, []uint64{7, 0x1000, 0}, retHold},
		{"own priority", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 0, 19}, retAllow},
		{"another's priority", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 7, 19}, retHold},
		{"a group's priority", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PGRP, 0, 19}, eperm},
		{"a user's priority", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_USER, 0, 19}, eperm},
		{"own disk priority", unix.SYS_IOPRIO_SET, []uint64{ioprioProcess, 0, 2 << 13}, retAllow},
		{"another's disk priority", unix.SYS_IOPRIO_SET, []uint64{ioprioProcess, 7, 2 << 13}, retHold},
		{"a group's disk priority", unix.SYS_IOPRIO_SET, []uint64{ioprioProcess + 1, 0, 2 << 13}, eperm},
		{"a user's disk priority", unix.SYS_IOPRIO_SET, []uint64{ioprioProcess + 2, 0, 2 << 13}, eperm},
		{"own core dump", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_CORE, 0x1000, 0}, retErrno(0)},
		{"another's core dump", unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_CORE, 0x1000, 0}, retErrno(0)},
		{"core dump asked for", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_CORE, 0, 0x1000}, retAllow},
		{"own core dump of old", unix.SYS_SETRLIMIT, []uint64{unix.RLIMIT_CORE, 0x1000}, retErrno(0)},
		{"own limit of old", unix.SYS_SETRLIMIT, []uint64{unix.RLIMIT_NOFILE, 0x1000}, retAllow},
		{"a core of its own", unix.SYS_PRCTL, []uint64{unix.PR_SCHED_CORE, 1}, retErrno(unix.EINVAL)},
		{"memory", unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, retAllow},
		{"the host's large pages", unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB}, retErrno(unix.ENOMEM)},
		{"memory with a name", unix.SYS_MEMFD_CREATE, []uint64{0x1000, unix.MFD_CLOEXEC}, retAllow},
		{"the host's large pages, with a name", unix.SYS_MEMFD_CREATE, []uint64{0x1000, unix.MFD_HUGETLB}, retErrno(unix.ENOMEM)},
		{"watch a file", unix.SYS_INOTIFY_ADD_WATCH, nil, retHold},
		{"watch a folder", unix.SYS_FCNTL, []uint64{3, unix.F_NOTIFY, 1}, retErrno(unix.EINVAL)},
		{"lease a file", unix.SYS_FCNTL, []uint64{3, unix.F_SETLEASE, unix.F_WRLCK}, retErrno(unix.EINVAL)},
		{"copy a descriptor", unix.SYS_FCNTL, []uint64{3, unix.F_DUPFD_CLOEXEC, 0}, retAllow},
		{"write all disks", unix.SYS_SYNC, nil, retErrno(0)},
		{"write a disk", unix.SYS_SYNCFS, []uint64{3}, retErrno(0)},
		{"ptrace", unix.SYS_PTRACE, nil, eperm},
		{"mount", unix.SYS_MOUNT, nil, eperm},
		{"io_uring", unix.SYS_IO_URING_SETUP, nil, eperm},
		{"after the list", newestCall + 1, nil, nosys},
	} {
		if got := verdictOf(t, auditArch, c.number, c.args...); got != c.want {
			t.Errorf("%s: %#x; want %#x", c.what, got, c.want)
		}
	}
	if got := verdictOf(t, auditArch^1, unix.SYS_READ); got != retKill {
		t.Errorf("a call of another architecture: %#x", got)
	}
	if x32Bit != 0 {
		if got := verdictOf(t, auditArch, x32Bit|unix.SYS_READ); got != retKill {
			t.Errorf("an x32 call: %#x", got)
		}
	}
}

func TestRanges(t *testing.T) {
	got := ranges([]uint32{5, 1, 2, 3, 9, 5, 8})
	want := []span{{1, 3}, {5, 5}, {8, 9}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%v; want %v", got, want)
	}
}

// TestHelperFilter: the helper may do what sandboxes may, and make them, and nothing else.
func TestHelperFilter(t *testing.T) {
	for number, want := range map[uint32]uint32{
		unix.SYS_READ: retAllow, unix.SYS_MOUNT: retAllow, unix.SYS_PIDFD_GETFD: retAllow, unix.SYS_CLONE3: retAllow, unix.SYS_CONNECT: retAllow, unix.SYS_SECCOMP: retAllow,
		unix.SYS_INIT_MODULE: retErrno(unix.EPERM), unix.SYS_PTRACE: retErrno(unix.EPERM), unix.SYS_BPF: retErrno(unix.EPERM), unix.SYS_SETNS: retErrno(unix.EPERM),
		unix.SYS_IO_URING_SETUP: retErrno(unix.EPERM), unix.SYS_KEYCTL: retErrno(unix.EPERM), unix.SYS_PERF_EVENT_OPEN: retErrno(unix.EPERM), unix.SYS_REBOOT: retErrno(unix.EPERM),
		unix.SYS_CLOCK_SETTIME: retErrno(unix.EPERM), unix.SYS_SWAPON: retErrno(unix.EPERM), unix.SYS_KEXEC_LOAD: retErrno(unix.EPERM), unix.SYS_PROCESS_VM_WRITEV: retErrno(unix.EPERM),
		unix.SYS_OPEN_BY_HANDLE_AT: retErrno(unix.EPERM), unix.SYS_USERFAULTFD: retErrno(unix.EPERM), unix.SYS_FSOPEN: retErrno(unix.EPERM), newestCall + 1: retErrno(unix.ENOSYS),
	} {
		if got := verdictBy(t, helperFilter, auditArch, number); got != want {
			t.Errorf("call %d: %x; want %x", number, got, want)
		}
	}
	if got := verdictBy(t, helperFilter, auditArch^1, unix.SYS_READ); got != retKill {
		t.Errorf("another architecture: %x", got)
	}
	for _, c := range append(commonCalls(), archCalls()...) { // what it starts inherits the filter
		if verdictBy(t, helperFilter, auditArch, c) != retAllow {
			t.Errorf("functions may call %d, and the helper may not", c)
		}
	}
}
