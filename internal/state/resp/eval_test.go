package resp_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"forerun.dev/forerun/test/history"
)

// scriptsToCompare are scripts whose replies, and errors, are those of Redis 7.0.
var scriptsToCompare = []string{
	"return 1", "return", "return nil", "return true", "return false", "return 3.99", "return -3.99", "return 'x'", "return {1,2,nil,4}", "return {1,{2,{'x'}},true,false}",
	"return {err='MY error'}", "return {ok='fine'}", "return redis.error_reply('MY x')", "return redis.error_reply('-x')", "return redis.status_reply('fine')", "return redis.status_reply()",
	"return {double=3.5}", "return {map={a=1}}", "return {set={a=true}}", "redis.setresp(3) return {true,false,{double=1.5}}", "return {verbatim_string={format='txt',string='x'}}",
	"error('boom')", "error('boom',0)", "error('boom',2)", "error({err='MY thing'})", "local function f() error('x',2) end f()", "assert(false)", "assert(nil,'no')", "return assert(1,2)",
	"return redis.call('foo')", "return redis.pcall('foo')", "return redis.call('get')", "return redis.call()", "return redis.call('set',{},1)", "return redis.call('multi')", "return redis.call('subscribe','x')",
	"return redis.call('set','k',1.5)", "return redis.call('set','k',1e15) and redis.call('get','k')", "return {redis.call('set','k',1/3), redis.call('get','k')}", "return redis.call('select','0')",
	"redis.call('set','s','x') local ok,e=pcall(redis.call,'lpush','s',1) return {tostring(ok),e}", "redis.call('set','s','x') local ok,e=xpcall(function() return redis.call('lpush','s',1) end,function(e) return e.err end) return {tostring(ok),e}",
	"redis.call('set','s','x') return redis.pcall('lpush','s',1)", "redis.call('set','s','x') return redis.call('lpush','s',1)", "return redis.call('get','none')", "return {redis.call('mget','none','s')}", "return type(redis.call('get','none'))",
	"redis.call('zadd','z',1.5,'a') return redis.call('zscore','z','a')", "redis.setresp(3) redis.call('zadd','z',1.5,'a') return redis.call('zscore','z','a')", "redis.setresp(3) redis.call('zadd','z',1.5,'a') return redis.call('zrange','z',0,-1,'withscores')",
	"redis.setresp(3) redis.call('hset','h','f','v') return redis.call('hgetall','h')", "redis.call('hset','h','f','v') return redis.call('hgetall','h')", "redis.setresp(3) return tostring(redis.call('get','none'))", "redis.setresp(3) redis.call('sadd','st','a') return redis.call('smembers','st')",
	"redis.setresp(5)", "redis.setresp()", "return redis.sha1hex('abc')", "return redis.sha1hex()", "return redis.sha1hex(12)", "return redis.log('x')", "return redis.log(1,'x')", "return redis.log(9,'x')", "return redis.replicate_commands()", "return redis.set_repl(redis.REPL_ALL)",
	"return x", "x=1", "string.x=1", "KEYS[1]='y' return KEYS[1]", "KEYS=1", "return #KEYS + #ARGV", "return print", "return os", "return io", "return require", "return dofile", "return getfenv", "return tostring(_G==nil)", "rawset(_G,'x',1)", "setmetatable(_G,{})", "return getmetatable('').__index == string",
	"return 1 +", "return ((1)", "local local", "for i=1 do end", "if x then", "return 'x", "return [[x", "--[[ x", "break", "return ...", "goto x", "local a <const> = 1", "return 0x", "return 1e", "f(", "x.y", "local function end", "return 'a\\400b'", "return @", "return a.1",
	"local a return a.b", "local a=nil; return a()", "local t={} return t.x.y", "local t={} t.x.y=1", "local t={} t.f()", "local t={} t:f()", "return 1 < 'x'", "return {} < {}", "return nil < 1", "return {1} .. 'x'", "local a return 'x'..a", "return 1 + {}", "local t={} return t.x + 1", "return -{}", "return #5", "return 'a'+1", "for i='a',2 do end", "for i=1,{} do end", "for k in 5 do end", "for k in pairs(nil) do end", "local t={} t[nil]=1", "local t={} t[0/0]=1", "return math.floor({})", "return ('x'):bad()", "return ('x').y", "return next({},'x')",
	"return {tostring(1e15),tostring(2^53),tostring(1e14),tostring(-1e100),tostring(0.1),tostring(1/0),tostring(-1/0),tostring(0/0),tostring(-(0/0)),tostring(123456789012345678),1e15 ..'',2^31 ..''}",
	"return {tostring(nil),tostring(true),tostring('x'),tostring(1),type(tostring({})),type(print==nil)}", "return {tonumber('0x1f'),tonumber(' 12 '),tonumber('1e2'),tostring(tonumber('x')),tostring(tonumber('')),tonumber('ff',16),tonumber('zz',36),tostring(tonumber('8',8)),tostring(tonumber('1 2')),tonumber('7',8),tostring(tonumber('0x')),tonumber('10',2)}",
	"return {10%3,-10%3,10%-3,5.5%2,tostring(2^0.5),7/2,tostring(1/3),-2^2,'10'+5,'3'*'4',10 ..20}", "return {1<2 and 1 or 0,'a'<'b' and 1 or 0,'a'<'B' and 1 or 0,'10'<'9' and 1 or 0,1==1.0 and 1 or 0,'1'==1 and 1 or 0,nil==false and 1 or 0}",
	"local a,b,c=(function() return 1,2,3 end)() return {a,b,c}", "local a,b=((function() return 1,2 end)()) return {a,tostring(b)}", "return {(function(...) return select('#',...),... end)(nil,nil)}", "return select(-1,1,2,3)", "return {select(2,'a','b','c')}", "return select(0)", "return {unpack({1,2,3},2)}", "return {unpack({1,2,3},2,5)}",
	"local t={} for i=1,10 do t[i]=i end for i=1,10,2 do t[i]=t[i]*2 end return t", "local t={} for i=10,1,-3 do t[#t+1]=i end return t", "local n=0 while true do n=n+1 if n>5 then break end end return n", "local n=0 repeat local m=n n=n+1 until m>=3 return n", "local fs={} for i=1,3 do fs[i]=function() i=i+1 return i end end return {fs[1](),fs[1](),fs[2](),fs[3]()}",
	"local function f(n) if n==0 then return 0 end return f(n-1) end return f(100000)", "local function f(n) if n==0 then return 0 end return 1+f(n-1) end return f(1000)", "local function f() return 1+f() end return f()", "local a={} local b=a b.x=1 return a.x", "local s='' for w in string.gmatch('one two  three','%a+') do s=s..w..',' end return s",
	"local mt={__index=function(t,k) return k..'!' end,__call=function(self,a) return a*2 end,__add=function(a,b) return 42 end,__eq=function() return true end,__lt=function() return true end,__le=function() return false end,__concat=function(a,b) return 'cat' end,__tostring=function() return 'me' end,__unm=function() return -1 end,__len=function() return 9 end} local a,b=setmetatable({},mt),setmetatable({},mt) return {a.foo,a(21),a+1,1+a,a==b and 1 or 0,a<b and 1 or 0,a<=b and 1 or 0,a..'x','x'..a,tostring(a),-a,#a}",
	"local t=setmetatable({},{__newindex=function(t,k,v) rawset(t,k,v*2) end}) t.x=4 return {t.x,rawget(t,'x')}", "local t=setmetatable({},{__metatable='locked'}) return {getmetatable(t),pcall(setmetatable,t,{})}", "local p={x=1} local c=setmetatable({},{__index=p}) return {c.x,tostring(rawget(c,'x'))}",
	"return {pcall(function() return 1,2 end)}", "return {tostring(pcall(error))}", "local ok,e=pcall(error,{1,2}) return e", "local ok,e=pcall(error,'x',0) return e", "local ok,e=pcall(function() local a=nil; a.b=1 end) return e", "return {pcall(pcall,error,'e')}",
	"return {string.find('hello world','o w')}", "return {string.find('hello','l+')}", "return {string.find('hello','(l)(l)')}", "return {string.find('a.b','.',1,true)}", "return {string.find('abc','b',-1)}", "return {tostring(string.find('abc','z'))}", "return {string.find('','')}", "return {string.find('abc','',10)}", "return {string.find('abc','()b()')}",
	"return {string.match('key=val','(%w+)=(%w+)')}", "return {string.match('  x  ','^%s*(.-)%s*$')}", "return {string.match('f(a(b)c)d','%b()')}", "return {string.match('2024-01-02','(%d+)-(%d+)-(%d+)')}", "return {string.match('THE (quick) fox','%((%a+)%)')}", "return {string.match('abcabc','(abc)%1')}", "return {string.match('hello','.-(l)')}", "return {string.match('x','[^%a]') == nil and 1 or 0, string.match(']','[]]'), string.match('-','[a-]'), string.match('^','[%^]')}",
	"return {string.gsub('hello world','o','0')}", "return {string.gsub('hello','','-')}", "return {string.gsub('hello','l','%0%0')}", "return {string.gsub('abc','%w','%%%0')}", "return {string.gsub('hello world','%w+',function(w) return w:upper() end)}", "return {string.gsub('$name is $x','%$(%w+)',{name='bob'})}", "return {string.gsub('abc','b','x',0)}", "return {string.gsub('aaa','a','b',2)}", "return {string.gsub('abc','^a','x')}", "return {string.gsub('abc','(b)','[%1]')}", "return string.gsub('THE (quick) fox','%f[%a]%a+','x')",
	"return string.find('a','[')", "return string.find('a','%')", "return string.find('a','(')", "return string.find('a',')')", "return string.find('a','%1')", "return string.gsub('a','a','%2')", "return string.rep('ab',3)", "return string.rep('x',-1)", "return {string.byte('ABC',1,-1)}", "return string.char(72,105)", "return string.char(256)", "return {string.sub('hello',2,4),string.sub('hello',-3),string.sub('hello',2),string.sub('hello',0),string.sub('hello',10),string.sub('hello',-100,2)}", "return {string.upper('aé'),string.lower('AÉ'),string.len('é'),string.reverse('abc')}",
	"return string.format('%5d|%-5d|%05d|%+d|% d|%x|%X|%o|%c|%s|%q|%%|%.3s|%10s|%-10s|',42,42,42,42,42,255,255,8,65,'x','a\"b\\n','abcdef','r','l')", "return string.format('%.3f|%10.2f|%-10.1f|%e|%g|%g|%G|%g|%.0f|%5.1f',3.14159,3.14159,3.14159,12345.678,0.0001,1e20,1e-10,100000,0.5,-2.25)", "return string.format('%d %d',3.7,-3.7)", "return string.format('%s',nil)", "return string.format('%d','x')", "return string.format('%y',1)", "return string.format('%123d',1)", "return string.format('%s %s','a')", "return string.format('%5.2d|%#x|%#o|%x',7,255,8,-1)", "return string.format('%g %g %f',1/0,-1/0,0/0)",
	"return {table.concat({1,2,3},','),table.concat({},'x'),table.concat({'a','b','c'},'-',2,3)}", "return table.concat({1,{},3})", "local t={3,1,2} table.sort(t) return t", "local t={3,1,2} table.sort(t,function(a,b) return a>b end) return t", "local t={1,'x'} table.sort(t) return t", "local t={1,2,3} table.insert(t,4) table.insert(t,1,0) return {table.remove(t),table.remove(t,1),unpack(t)}", "return {table.maxn({1,2,[10]=3}),table.getn({1,2}),#{1,2,3}}", "return table.remove({})", "table.insert({},1,2,3)",
	"return {math.floor(3.7),math.ceil(3.2),math.max(1,5,3),math.min(4,2),math.abs(-3),math.fmod(7,3),math.sqrt(16),math.pow(2,10),tostring(math.huge),tostring(math.pi),math.modf(3.7)}", "return {tostring(math.exp(1)),tostring(math.log(10)),math.log10(1000),tostring(math.sin(1)),math.ldexp(1,4),math.frexp(8)}", "math.randomseed(42) return {math.random(1000),math.random(1000),math.random(5,10),tostring(math.random())}", "math.randomseed(-7) return {math.random(1000000),math.random(1000000)}", "return math.random(0)", "return math.random(5,1)",
	"return {bit.band(12,10),bit.bor(12,10),bit.bxor(12,10),bit.bnot(0),bit.lshift(1,31),bit.rshift(-1,1),bit.arshift(-8,1),bit.rol(0x12345678,8),bit.ror(0x12345678,8),bit.bswap(0x12345678),bit.tobit(0xffffffff),bit.tohex(255),bit.tohex(-1,4),bit.tohex(255,-4),bit.bor(1,2^32),bit.tobit(1.5),bit.tobit(2.5)}", "return bit.band()", "return bit.band('x')",
	"return cjson.encode({1,2,{a='b'},true,cjson.null})", "return cjson.encode({})", "return cjson.encode({[1]=1,[3]=3})", "return cjson.encode({[1]=1,[100]=1})", "return cjson.encode({[1.5]=1})", "return cjson.encode('a/b\"c\\\\\\n\\t\\1é\\127')", "return cjson.encode({0.1,1e20,123456789012345678,-0,1e15})", "return cjson.encode(1/0)", "return cjson.encode(print)", "return cjson.encode(function() end)", "local t={} t.t=t return cjson.encode(t)", "return cjson.encode({[true]=1})", "return cjson.encode()", "return cjson.encode('a','b')",
	"local t=cjson.decode('{\"a\":[1,2.5,-3e2,true,false,null,\"x\"],\"b\":{}}') return {t.a[1],tostring(t.a[2]),t.a[3],tostring(t.a[4]),tostring(t.a[5]),t.a[6]==cjson.null and 1 or 0,t.a[7],type(t.b)}", "return cjson.decode('\"\\\\u00e9\\\\ud83d\\\\ude00\\\\n\\\\/\"')", "return cjson.decode('[1,')", "return cjson.decode('{\"a\"}')", "return cjson.decode('{1:2}')", "return cjson.decode('[1 2]')", "return cjson.decode('{\"a\":1 2}')", "return cjson.decode('1 2')", "return cjson.decode('x')", "return cjson.decode('')", "return cjson.decode('\"abc')", "return cjson.decode('\"\\\\x\"')", "return {tostring(cjson.null),type(cjson.null)}", "return {tostring(cjson.decode('0x10')),tostring(cjson.decode('[nan]')[1]),tostring(cjson.decode('[-inf]')[1])}", "return cjson.encode(cjson.decode('[[[]]]'))", "return cjson.decode(string.rep('[',2000))",
	"local r={} for _,v in ipairs({0,1,127,128,255,256,65535,65536,2^32,2^53,-1,-32,-33,-128,-129,-32768,-32769,-2^31,-2^31-1,1.5,0.1,true,false,'x',string.rep('y',40)}) do local p=cmsgpack.pack(v) r[#r+1]=p r[#r+1]=tostring(cmsgpack.unpack(p)) end return r", "return cmsgpack.pack({1,2,3})", "return cmsgpack.pack({a=1})", "return cmsgpack.pack({})", "return cmsgpack.pack(1,'a',nil)", "return {cmsgpack.unpack(cmsgpack.pack(1,2,'x'))}", "return {cmsgpack.unpack_one(cmsgpack.pack(1,2))}", "return {cmsgpack.unpack_one(cmsgpack.pack(1,2),1)}", "return {cmsgpack.unpack_limit(cmsgpack.pack(1,2,3),2)}", "return cmsgpack.unpack('\\217')", "return cmsgpack.unpack('\\193')", "return cmsgpack.pack()", "local t={} t.t=t return #cmsgpack.pack(t)", "return cmsgpack.pack({[1]='a',[3]='b'}):len()",
	"return struct.pack('>I2i4',258,-2)", "return struct.pack('<hHlL',1,2,3,4)", "return struct.pack('bB',-1,255)", "return struct.pack('sc3',\"ab\",'xyzw')", "return {struct.unpack('>I2s',struct.pack('>I2s',513,'hey'))}", "return {struct.unpack('bc0',struct.pack('bc0',3,'abc'))}", "return struct.size('!4bi4')", "return struct.size('>bhilT')", "return {tostring((struct.unpack('f',struct.pack('f',1.5)))),tostring((struct.unpack('d',struct.pack('d',0.1))))}", "return struct.pack('y',1)", "return {struct.unpack('I4','ab')}", "return struct.pack('c5','ab')", "return struct.size('s')", "return struct.pack('!8xi8',1)",
	"return loadstring('return 1+1')()", "local f,e=loadstring('return +') return {tostring(f),type(e)}", "local n=0 return load(function() n=n+1 return n==1 and 'return 7' or nil end)()", "return type(collectgarbage('count'))", "return collectgarbage()", "return _VERSION", "return {type(redis.REDIS_VERSION),redis.LOG_WARNING}", "return redis.acl_check_cmd('set','a','b')", "return redis.acl_check_cmd('foo')",
	"redis.call('set','a','1') redis.call('incr','a') return {redis.call('get','a'),redis.call('exists','a','b'),redis.call('del','a')}", "redis.call('rpush','l',1,2,3) return redis.call('lrange','l',0,-1)", "return redis.call('ping')", "return redis.call('echo','x')", "return redis.call('object','encoding','none')", "return redis.call('config','get','port')", "return redis.call('type','z')", "return redis.call('expire','z',100)",
	"#!lua\nreturn 1", "#!lua flags=no-writes\nreturn redis.call('set','a',1)", "#!lua flags=no-writes\nreturn redis.call('get','a')", "#!lua name=x\nreturn 1", "#!python\nreturn 1", "#!lua flags=foo\nreturn 1", "#!lua", "return\n\nx", "local a = 1\n\nerror('x')",
	"local a;;return 1", "local t = {1;2;x=3,[4]=5} return {t[1],t[2],t.x,t[4]}", "local t={f=function(self,x) return x end} return {t:f'a',t:f{1}[1],#t:f'abc'}", "return ('%d'):format(5)", "local a <= 1", "return 2^3^2", "return not nil == true and 1 or 0", "return -2 ^ 2", "return 1 .. 2 .. 3", "return 'a' .. 1 + 2", "return (2+3)*4", "return {1,2,3}[1]", "local a = {n=1} a.n, a.m = a.n+1, a.n+2 return {a.n,a.m}", "local i=1 local t={} i, t[i] = i+1, 20 return {i,t[1],tostring(t[2])}", "do local x=1 end return x", "local x=1 do local x=2 end return x", "return 0x10 + 0xA", "return 'a\\065\\n\\\\\\'b'", "return [==[\na]]b]==]", "return --[==[ x ]==] 1", "return 1 -- x",
}

var addresses = regexp.MustCompile(`0x[0-9a-f]+`)

// comparableReply is a reply without what is a matter of the version: addresses.
func comparableReply(reply string) string { return addresses.ReplaceAllString(reply, "0x") }

// TestScriptsAnswerAsRedis compares scripts with Redis, with RESP2 and RESP3.
func TestScriptsAnswerAsRedis(t *testing.T) {
	socket := startRedis(t)
	for _, protocol := range []string{"2", "3"} {
		redis, ours := talkTo(t, "unix", socket), talkTo(t, "tcp", open(t).address)
		redis.say("HELLO", protocol)
		ours.say("HELLO", protocol)
		for _, script := range scriptsToCompare {
			for _, k := range []*talker{redis, ours} {
				k.say("FLUSHALL")
				k.say("ZADD", "z", "1", "a")
			}
			args := []string{"EVAL", script, "2", "k", "z", "arg"}
			want, got := comparableReply(redis.say(args...)), comparableReply(ours.say(args...))
			if want != got {
				t.Errorf("RESP%s %s\nRedis    %s\nForerun  %s", protocol, script, want, got)
			}
		}
	}
}

// program makes a random script of commands on some records, and of what Lua does with their replies.
func program(rng *rand.Rand) string {
	var b strings.Builder
	b.WriteString("local r={} local n=0\n")
	for range 1 + rng.IntN(6) {
		args := sentence(rng)
		name := strings.ToUpper(args[0])
		timed := strings.HasSuffix(name, "TTL") || strings.HasSuffix(name, "EXPIRETIME") // which differ by the time between two calls
		if len(args) > 60 || isRandom(name) || unordered[name] != 0 || timed || name == "SELECT" {
			args = []string{"GET", "string1"}
		}
		call := "redis.pcall"
		if rng.IntN(12) == 0 {
			call = "redis.call"
		}
		quoted := make([]string, len(args))
		for i, arg := range args {
			quoted[i] = luaString(arg)
		}
		switch rng.IntN(5) {
		case 0:
			fmt.Fprintf(&b, "for i=1,%d do r[#r+1]=%s(%s) end\n", 1+rng.IntN(3), call, strings.Join(quoted, ","))
		case 1:
			fmt.Fprintf(&b, "do local v=%s(%s) if type(v)=='table' then n=n+#v else r[#r+1]=tostring(v)..'x' end end\n", call, strings.Join(quoted, ","))
		case 2:
			fmt.Fprintf(&b, "r[#r+1]={pcall(%s,%s)}\n", call, strings.Join(quoted, ","))
		default:
			fmt.Fprintf(&b, "r[#r+1]=%s(%s)\n", call, strings.Join(quoted, ","))
		}
	}
	b.WriteString("r[#r+1]=n return r")
	return b.String()
}

func luaString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		fmt.Fprintf(&b, "\\%03d", s[i])
	}
	b.WriteByte('"')
	return b.String()
}

// TestRandomScriptsAnswerAsRedis: whatever commands a script is made of. A script that fails leaves nothing here, but in Redis, so what
// each has written is compared after those that do not.
func TestRandomScriptsAnswerAsRedis(t *testing.T) {
	redis, ours := talkTo(t, "unix", startRedis(t)), talkTo(t, "tcp", open(t).address)
	for seed, rng := range history.Rounds(t) {
		redis.say("FLUSHALL")
		ours.say("FLUSHALL")
		for n := range 600 {
			script := program(rng)
			want, got := redis.say("EVAL", script, "0"), ours.say("EVAL", script, "0")
			if want != got {
				t.Fatalf("seed %d, script %d:\n%s\nRedis    %s\nForerun  %s", seed, n, script, want, got)
			}
			if strings.HasPrefix(want, "-") {
				redis.say("FLUSHALL")
				ours.say("FLUSHALL")
			}
		}
	}
}
