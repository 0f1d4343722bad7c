package guard

import "golang.org/x/sys/unix"

// commonCalls are the allowed system calls that every architecture has. The list starts from what Docker's default
// profile allows without any capability; left out of it, because functions need none of them and each is a way
// around the sandbox or a large part of the kernel to attack: ptrace, process_vm_*, pidfd_getfd, kcmp, bpf,
// perf_event_open, userfaultfd, io_uring, native aio, keyctl, the mount calls, setns, unshare, SysV and POSIX message
// queues and shared memory, fanotify, file handles, memfd_secret, clock and module calls.
func commonCalls() []uint32 {
	return []uint32{
		unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_BIND, unix.SYS_BRK, unix.SYS_CAPGET, unix.SYS_CAPSET, unix.SYS_CHDIR,
		unix.SYS_CHROOT, // needs a capability that nobody inside has: answered by the kernel
		unix.SYS_CLOCK_GETRES, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE,
		unix.SYS_COPY_FILE_RANGE, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT,
		unix.SYS_EPOLL_PWAIT2, unix.SYS_EVENTFD2, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
		unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_FADVISE64, unix.SYS_FALLOCATE, unix.SYS_FCHDIR, unix.SYS_FCHMOD,
		unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_FDATASYNC,
		unix.SYS_FGETXATTR, unix.SYS_FLISTXATTR, unix.SYS_FLOCK, unix.SYS_FREMOVEXATTR, unix.SYS_FSETXATTR, unix.SYS_FSTAT,
		unix.SYS_FSTATFS, unix.SYS_FSYNC, unix.SYS_FTRUNCATE, unix.SYS_FUTEX, unix.SYS_FUTEX_WAITV, unix.SYS_FUTEX_WAIT,
		unix.SYS_FUTEX_WAKE, unix.SYS_FUTEX_REQUEUE, unix.SYS_GETCPU, unix.SYS_GETCWD, unix.SYS_GETDENTS64, unix.SYS_GETEGID,
		unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETGROUPS, unix.SYS_GETITIMER, unix.SYS_GETPEERNAME, unix.SYS_GETPGID,
		unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETPRIORITY, unix.SYS_GETRANDOM, unix.SYS_GETRESGID, unix.SYS_GETRESUID,
		unix.SYS_GETRLIMIT, unix.SYS_GET_ROBUST_LIST, unix.SYS_GETRUSAGE, unix.SYS_GETSID, unix.SYS_GETSOCKNAME,
		unix.SYS_GETTID, unix.SYS_GETTIMEOFDAY, unix.SYS_GETUID, unix.SYS_GETXATTR,
		unix.SYS_INOTIFY_INIT1, unix.SYS_INOTIFY_RM_WATCH, unix.SYS_IOPRIO_GET, unix.SYS_KILL,
		unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_RESTRICT_SELF, unix.SYS_LGETXATTR,
		unix.SYS_LINKAT, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_LSEEK,
		unix.SYS_LSETXATTR, unix.SYS_MADVISE, unix.SYS_MEMBARRIER, unix.SYS_MINCORE, unix.SYS_MKDIRAT,
		unix.SYS_MKNODAT, unix.SYS_MLOCK, unix.SYS_MLOCK2, unix.SYS_MLOCKALL, unix.SYS_MPROTECT, unix.SYS_MREMAP,
		unix.SYS_MSEAL, unix.SYS_MSYNC, unix.SYS_MUNLOCK, unix.SYS_MUNLOCKALL, unix.SYS_MUNMAP, unix.SYS_NANOSLEEP, unix.SYS_OPENAT,
		unix.SYS_OPENAT2, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PIPE2, unix.SYS_PKEY_ALLOC, unix.SYS_PKEY_FREE,
		unix.SYS_PKEY_MPROTECT, unix.SYS_PPOLL, unix.SYS_PREAD64, unix.SYS_PREADV, unix.SYS_PREADV2,
		unix.SYS_PROCESS_MRELEASE, unix.SYS_PSELECT6, unix.SYS_PWRITE64, unix.SYS_PWRITEV, unix.SYS_PWRITEV2, unix.SYS_READ,
		unix.SYS_READAHEAD, unix.SYS_READLINKAT, unix.SYS_READV, unix.SYS_RECVFROM, unix.SYS_RECVMMSG, unix.SYS_RECVMSG,
		unix.SYS_REMAP_FILE_PAGES, unix.SYS_REMOVEXATTR, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_RESTART_SYSCALL,
		unix.SYS_RSEQ, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGQUEUEINFO,
		unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGSUSPEND, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_RT_TGSIGQUEUEINFO,
		unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_GETATTR, unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_GET_PRIORITY_MAX,
		unix.SYS_SCHED_GET_PRIORITY_MIN, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_SCHED_RR_GET_INTERVAL,
		unix.SYS_SCHED_YIELD, unix.SYS_SECCOMP,
		unix.SYS_SENDFILE, unix.SYS_SETFSGID, unix.SYS_SETFSUID, unix.SYS_SETGID, unix.SYS_SETGROUPS, unix.SYS_SETITIMER,
		unix.SYS_SETPGID, unix.SYS_SETREGID, unix.SYS_SETRESGID, unix.SYS_SETRESUID, unix.SYS_SETREUID,
		unix.SYS_SET_ROBUST_LIST, unix.SYS_SETSID, unix.SYS_SET_TID_ADDRESS, unix.SYS_SETUID, unix.SYS_SETXATTR,
		unix.SYS_SHUTDOWN, unix.SYS_SIGALTSTACK, unix.SYS_SIGNALFD4, unix.SYS_SPLICE, unix.SYS_STATFS, unix.SYS_STATX,
		unix.SYS_SYMLINKAT, unix.SYS_SYNC_FILE_RANGE, unix.SYS_SYSINFO, unix.SYS_TEE, unix.SYS_TGKILL,
		unix.SYS_TIMER_CREATE, unix.SYS_TIMER_DELETE, unix.SYS_TIMER_GETOVERRUN, unix.SYS_TIMER_GETTIME, unix.SYS_TIMER_SETTIME,
		unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_GETTIME, unix.SYS_TIMERFD_SETTIME, unix.SYS_TIMES, unix.SYS_TKILL,
		unix.SYS_TRUNCATE, unix.SYS_UMASK, unix.SYS_UNAME, unix.SYS_UNLINKAT, unix.SYS_UTIMENSAT, unix.SYS_VMSPLICE, unix.SYS_WAIT4,
		unix.SYS_WAITID, unix.SYS_WRITE, unix.SYS_WRITEV,
	}
}
