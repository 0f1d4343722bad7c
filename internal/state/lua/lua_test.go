package lua

import (
	"errors"
	"strings"
	"testing"
)

// quiet is a host that lets a script do so much work.
type quiet struct{ left int }

var errOver = errors.New("the host has had enough")

func (q *quiet) Work(bytes int) error {
	if q.left -= bytes; q.left < 0 {
		return errOver
	}
	return nil
}

func (q *quiet) Seed() (uint64, error) { return 7, nil }

func run(t *testing.T, source string, work int) ([]Value, error) {
	t.Helper()
	chunk, err := Compile("test", source)
	if err != nil {
		return nil, err
	}
	return New(&quiet{work}, nil).Run(chunk)
}

// TestRunawaysEnd: each of these would go on for ever, or fill the memory. pcall does not save it.
func TestRunawaysEnd(t *testing.T) {
	for _, source := range []string{
		"while true do end", "repeat until false", "for i=1,math.huge do end", "local function f() return f() end f()",
		"while true do pcall(error) end", "local function f() pcall(f) pcall(f) end f()", "pcall(function() while true do end end) while true do end",
		"local s='x' while true do s=s..s end", "local t={} while true do t[#t+1]=t end", "while true do local t={} end", "local t={} for i=1,1e9 do t[i*2]=i end",
		"return string.rep('x',1e9)", "return ('x'):rep(2^40)", "local s=('x'):rep(1e6) local t={} while true do t[#t+1]=s:upper() end", "return ('x'):rep(1e5):gsub('x',('y'):rep(1e5))",
		"local t={} for i=1,1000 do t[i]=('x'):rep(1e6) end return table.concat(t)", "local s=('x'):rep(1e6) return table.concat({s,s,s},s):rep(1e3)", "local t={} t[1e15]=1 while true do t[#t+1]=1 end",
		"local function f(...) return f(1,...) end f()", "local t={} for i=1,1e6 do t[i]=i end while true do local u={unpack(t)} end", "while true do local f=function() return f end end",
		"return string.find(('a'):rep(30000),('.-'):rep(20)..'b')", "return ('a'):rep(1e5):find('(.*)(.*)(.*)(.*)b')", "return ('x'):rep(1e6):gsub('.-','xxxxxxxx'):gsub('x','xxxxxxxxxxxxxxxx'):rep(100)",
		"local t=setmetatable({},{__index=function(t,k) return t[k] end}) return t.x", "local t=setmetatable({},{}) getmetatable(t).__index=t return t.x", "local t=setmetatable({},{__call=function(t) return t() end}) t()",
		"return cjson.decode(('['):rep(1e6))", "local t={} for i=1,1e5 do t={t} end return cjson.encode(t)", "return cmsgpack.unpack(('\\221\\255\\255\\255\\255'):rep(1e5))", "return cmsgpack.unpack(('\\145'):rep(1e6))",
		"return struct.pack(('!8xi8'):rep(1e6))", "return string.format(('%99d'):rep(1e5):rep(100),1)", "local f=loadstring(('do '):rep(1e5)) return f()", "return table.concat({},',',1,1e15)", "for i=1,1e9 do table.insert({},1) end",
		"local s='return '..('('):rep(1e5)..'1' return loadstring(s)()", "local t={} for i=1,1e5 do t[i]=i end while true do table.sort(t,function(a,b) return true end) end", "while true do loadstring('return 1') end", "return tostring(setmetatable({},{__tostring=function(t) return tostring(t) end}))",
		"xpcall(function() error('x') end,function() while true do end end)", "local t={} while true do t[{}]=1 end", "return select('#',unpack({},1,1e8))", "while true do string.byte(('x'):rep(1e5),1,-1) end",
	} {
		values, err := run(t, source, 1<<24)
		if err == nil {
			t.Errorf("%.80s: %.80v", source, values)
		}
	}
}

// TestRunawaysLeaveSmallTraces: what is refused is refused before it is made.
func TestRunawaysLeaveSmallTraces(t *testing.T) {
	for _, source := range []string{"return string.rep('x',1e9)", "local s='x' while true do s=s..s end"} {
		chunk, _ := Compile("test", source)
		s := New(&quiet{1 << 40}, nil)
		if _, err := s.Run(chunk); err == nil || s.bytes > 5*MaxMemory || !strings.Contains(err.Error(), "MiB") {
			t.Errorf("%s: %v after %d bytes", source, err, s.bytes)
		}
	}
}

// TestLongStringsCost: what is only looked at is work by its length, and what an error says takes memory.
func TestLongStringsCost(t *testing.T) {
	for _, source := range []string{
		"local t={a=1} for i=1,2000 do local x=t[s] end", "for i=1,2000 do tonumber(s) end", "for i=1,2000 do local x=pcall(math.abs,s) end", "for i=1,2000 do tonumber(s,16) end",
		"for i=1,2000 do ('a'):find(s) end", "for i=1,2000 do pcall(cjson.decode,'\"'..s) end", "local j=(' '):rep(1e5) for i=1,2000 do pcall(cjson.decode,j) end", "for i=1,2000 do pcall(struct.unpack,'s',s) end",
		"local u=s:upper() for i=1,2000 do rawequal(s,u) end", "for i=1,2000 do pcall(next,{},s) end",
		"local t={} for i=1,1e4 do t['k'..i]=1 end for i=1,1e4 do t['k'..i]=nil end for i=1,2000 do next(t) end",
	} {
		if _, err := run(t, "local s=('f'):rep(1e5) "+source, 1<<26); !errors.Is(err, errOver) {
			t.Errorf("%s: %v", source, err)
		}
	}
	for _, source := range []string{"pcall(assert,false,s)", "pcall(function() return _G[s] end)", "for j=1,1000 do cjson.new() end"} {
		if _, err := run(t, "local s=('x'):rep(1e6) for i=1,1000 do "+source+" end", 1<<40); err == nil || !strings.Contains(err.Error(), "MiB") {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestManyVariables: what is looked for in vain among many variables is refused before it takes long.
func TestManyVariables(t *testing.T) {
	names := func(n int) string { return "local a" + strings.Repeat(",a", n-1) + " " }
	for _, c := range []struct {
		levels, uses int
		refused      bool
	}{{190, 10_000, true}, {3, 10_000, false}} {
		source := strings.Repeat("local function f() "+names(195), c.levels) + strings.Repeat("g=1 ", c.uses) + strings.Repeat(" end", c.levels)
		if _, err := Compile("test", source); (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "too many variables") {
			t.Errorf("%d levels: %v", c.levels, err)
		}
	}
}

// TestTheHostEndsAScript: whatever it does, and with the host's error.
func TestTheHostEndsAScript(t *testing.T) {
	for _, source := range []string{"while true do end", "while true do pcall(function() while true do end end) end", "return ('a'):rep(1e5):find('(.-)(.-)(.-)b')", "local s=('x'):rep(1e7) return s==s..''"} {
		if _, err := run(t, source, 1<<20); !errors.Is(err, errOver) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestRunsAreAlike: two runs of a script walk over tables in the same order, and show the same names of tables.
func TestRunsAreAlike(t *testing.T) {
	source := `local t={} for i=1,50 do t['k'..i]=i t[i*1.5]=i end t.k7=nil t.new=1 local s=tostring({})..tostring(print==nil)
		for k,v in pairs(t) do s=s..tostring(k)..v..',' end return s..cjson.encode({a=1,b=2,c=3})..math.random()`
	a, err := run(t, strings.ReplaceAll(source, "print", "type"), 1<<30)
	b, again := run(t, strings.ReplaceAll(source, "print", "type"), 1<<30)
	if err != nil || again != nil || a[0] != b[0] || !strings.Contains(a[0].(string), "k49") {
		t.Errorf("%v, %v\n%v\n%v", err, again, a, b)
	}
}

// TestTablesWhileTheyAreWalked: a walk goes on while what it finds is removed.
func TestTablesWhileTheyAreWalked(t *testing.T) {
	got, err := run(t, `local t={1,2,3,4,5} for i=1,100 do t['k'..i]=i end
		local n=0 for k in pairs(t) do t[k]=nil n=n+1 end
		local left=0 for _ in pairs(t) do left=left+1 end
		for i=1,50 do t['n'..i]=i end for i=1,40 do t['n'..i]=nil end for i=1,50 do t['m'..i]=i end
		local more=0 for _ in pairs(t) do more=more+1 end
		t={} for i=10,1,-1 do t[i]=i end
		return n..' '..left..' '..more..' '..#t..' '..tostring(next({}))`, 1<<30)
	if err != nil || got[0] != "105 0 60 10 nil" {
		t.Errorf("%v, %v", got, err)
	}
}

// FuzzLua: no text makes the compiler or a run panic.
func FuzzLua(f *testing.F) {
	for _, seed := range []string{
		"local t={1,2,x=3} for k,v in pairs(t) do t[k]=v..'' end return #t, t.x", "return (function(...) return select('#',...) end)(1,nil)", "goto x", "return ('%5.2f'):format(1)",
		"return string.gsub('abc','(b)','%1%0')", "return cjson.decode('{\"a\":[1,null]}').a[1]", "return struct.unpack('>I2s',struct.pack('>I2s',1,'x'))", "return cmsgpack.unpack('\\146\\1\\161x')",
		"local a <= b", "return string.find('x','[%a-]')", "return string.format('%q %c',1,2)", "for i=1,3 do local function f() return i end f() end", "return 1 .. 2 ^ -3 % 4 == not nil",
		"local a do local function f(", "for a=0,0 do function b", "local a repeat local f=function(", // an error in a function within a block
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) > 2000 {
			return
		}
		_, _ = run(t, source, 1<<20)
	})
}

// indexless is a host that has a fault.
type indexless struct{ quiet }

func (*indexless) Seed() (uint64, error) {
	var none []uint64
	return none[len(none)], nil
}

// TestAFaultEndsItsScript: a fault of the interpreter or its host ends the script, and pcall does not hide it.
func TestAFaultEndsItsScript(t *testing.T) {
	chunk, err := Compile("test", "return pcall(math.random)")
	if err != nil {
		t.Fatal(err)
	}
	values, err := New(&indexless{quiet{1 << 20}}, nil).Run(chunk)
	if err == nil || !strings.Contains(err.Error(), "interpreter failed") {
		t.Errorf("%v, %v", values, err)
	}
}
