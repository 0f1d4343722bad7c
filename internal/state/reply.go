package state

// Reply is what a command answers, before a door writes it as RESP2 or RESP3.
type Reply struct {
	Kind  ReplyKind
	Text  []byte  // of Simple, Error, Bulk and Verbatim
	Int   int64   // of Integer; 0 or 1 of Boolean
	Float float64 // of Double
	Items []Reply // of Array, SetReply, and MapReply and Pairs (keys and values in turn)
}

// ReplyKind is the RESP3 type of a reply; a RESP2 client gets its nearest equivalent.
type ReplyKind byte

// The kinds of replies.
const (
	Nil ReplyKind = iota
	Simple
	Error
	Integer
	Bulk
	Array
	MapReply
	SetReply
	Double
	Boolean
	NilArray  // a list that is not there: Nil in RESP3, an array of its own in RESP2
	Pairs     // members with something of each: an array of arrays of two in RESP3, one flat array in RESP2
	Verbatim  // Text is plain text for people: a Bulk in RESP2
	Push      // Items that come without a request, or beside it: an Array in RESP2
	Published // what a script answers, and then channels and messages in turn that it has published: the door sends these
)
