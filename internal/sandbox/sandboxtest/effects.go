package sandboxtest

import "fmt"

// effects are ways to send WORD to the peer over TCP, or udp, or to ask a nameserver for it. Each writes a line to the standard output
// when it is about to, and has for its result what comes back.
var effects = map[string]string{
	"blocking":       "tell(); s = socket.create_connection(peer); s.sendall(WORD); result = s.recv(100).decode()",
	"with a timeout": "tell(); s = socket.create_connection(peer, timeout=10); s.sendall(WORD); result = s.recv(100).decode()",
	"non-blocking": `
tell(); s = socket.socket(); s.setblocking(False); s.connect_ex(peer)
select.select([], [s], []); s.send(WORD); select.select([s], [], []); result = s.recv(100).decode()`,
	"write": "tell(); s = socket.create_connection(peer); os.write(s.fileno(), WORD); result = os.read(s.fileno(), 100).decode()",
	"sendmsg after connect": `
tell(); s = socket.create_connection(peer); s.sendmsg([WORD]); result = s.recv(100).decode()`,
	"udp":           "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); tell(); s.sendto(WORD, udp); result = s.recv(100).decode()",
	"udp connected": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); tell(); s.connect(udp); s.send(WORD); result = s.recv(100).decode()",
	"udp write": `
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(udp); tell()
os.write(s.fileno(), WORD); result = os.read(s.fileno(), 100).decode()`,
	"udp sendmsg": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); tell(); s.sendmsg([WORD], [], 0, udp); result = s.recv(100).decode()",
	"sendmmsg": `
import ctypes
class iovec(ctypes.Structure): _fields_ = [('base', ctypes.c_char_p), ('len', ctypes.c_size_t)]
class msghdr(ctypes.Structure): _fields_ = [('name', ctypes.c_char_p), ('namelen', ctypes.c_uint), ('iov', ctypes.POINTER(iovec)),
    ('iovlen', ctypes.c_size_t), ('control', ctypes.c_void_p), ('controllen', ctypes.c_size_t), ('flags', ctypes.c_int)]
class mmsghdr(ctypes.Structure): _fields_ = [('hdr', msghdr), ('len', ctypes.c_uint)]
name = struct.pack('=H', socket.AF_INET) + struct.pack('!H', udp[1]) + socket.inet_aton(udp[0]) + bytes(8)
one = iovec(WORD, len(WORD)); many = mmsghdr(msghdr(name, len(name), ctypes.pointer(one), 1, None, 0, 0), 0)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); tell()
assert ctypes.CDLL(None, use_errno=True).sendmmsg(s.fileno(), ctypes.byref(many), 1, 0) == 1, ctypes.get_errno()
result = s.recv(100).decode()`,
	"thread": `
import _thread
done = _thread.allocate_lock(); done.acquire()
def work():
    global result
    tell(); s = socket.create_connection(peer); s.sendall(WORD); result = s.recv(100).decode(); done.release()
_thread.start_new_thread(work, ()); done.acquire()`,
	"child": `
back, out = os.pipe()
if os.fork() == 0:
    os.setsid(); tell(); s = socket.create_connection(peer); s.sendall(WORD); os.write(out, s.recv(100)); os._exit(0)
result = os.read(back, 100).decode()`,
	"detached child": `
back, out = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid(); tell(); s = socket.create_connection(peer); s.sendall(WORD); os.write(out, s.recv(100))
    os._exit(0)
result = os.read(back, 100).decode()`,
	"passed on": `
a, b = socket.socketpair()
if os.fork() == 0:
    s = socket.socket(); tell(); s.connect(peer); socket.send_fds(a, [b'x'], [s.fileno()]); os._exit(0)
s = socket.socket(fileno=socket.recv_fds(b, 1, 1)[1][0]); s.sendall(WORD); result = s.recv(100).decode()`,
	"bare connect":           "tell(); s = socket.create_connection(peer); result = WORD.decode()",
	"bare connect over IPv6": "tell(); s = socket.create_connection(peer6); result = WORD.decode()",
	"IPv6":                   "tell(); s = socket.create_connection(peer6); s.sendall(WORD); result = s.recv(100).decode()",
	"mapped": `
s = socket.socket(socket.AF_INET6); tell(); s.connect(('::ffff:' + peer[0], peer[1])); s.sendall(WORD); result = s.recv(100).decode()`,
	"udp mapped": `
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); tell(); s.sendto(WORD, ('::ffff:' + udp[0], udp[1])); result = s.recv(100).decode()`,
	"udp over IPv6 or else TCP": `
tell()
try: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(WORD, udp6)
except OSError: pass
s = socket.create_connection(peer6); s.sendall(WORD); result = s.recv(100).decode()`,
	"name":                 "tell(); result = found(socket.inet_aton(socket.getaddrinfo(NAME, 80, socket.AF_INET)[0][4][0]))",
	"question":             "result = ask('127.0.0.1')",
	"question outside":     "result = ask(peer[0])",
	"TCP question":         "result = ask_stream('127.0.0.1')",
	"TCP question outside": "result = ask_stream(peer[0])",
}

const effectHeader = `
import os, select, socket, struct
def tell(): os.write(1, b'!')
def found(address): return WORD.decode() if address == socket.inet_aton(peer[0]) else str(address)
def ask(server):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); tell(); s.sendto(QUESTION, (server, 53)); return found(s.recv(512)[-4:])
def ask_stream(server):
    tell(); s = socket.create_connection((server, 53))
    s.sendall(struct.pack('!H', len(QUESTION)) + QUESTION); return found(s.recv(512)[-4:])
`

// program is an effect that sends word.
func (s *suite) program(effect, word string, c *Counter) string {
	return effectHeader + fmt.Sprintf("peer, udp, peer6, udp6 = ('%[1]v', %[3]d), ('%[1]v', %[4]d), ('%[2]v', %[3]d), ('%[2]v', %[4]d)\nWORD, NAME, QUESTION = b'%[5]s\\n', '%[5]s.test', bytes.fromhex('%[6]x')\n",
		s.host, s.host6, c.TCP(word), c.UDP, word, Question(word)) + effects[effect]
}
