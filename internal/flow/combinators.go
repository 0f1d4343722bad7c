package flow

import "encoding/json"

// The combinators that the conductor of npm openwhisk-composer has states for.

func (c *compiler) row(r row) part {
	return func() error {
		c.emit(r)
		return nil
	}
}

func (c *compiler) builtin(b builtin) part { return c.row(row{op: opBuiltin, builtin: b}) }

func (c *compiler) seq(parts ...part) part {
	return func() error {
		for _, p := range parts {
			if err := p(); err != nil {
				return err
			}
		}
		return nil
	}
}

func (c *compiler) let(values members, body part) part {
	return c.seq(c.row(row{op: opLet, vars: &vars{values}}), body, c.row(row{op: opExit}))
}

func (c *compiler) mask(body part) part {
	return c.seq(c.row(row{op: opMask}), body, c.row(row{op: opExit}))
}

// forward appends a row that goes to a place not yet known; land makes that place the row to come.
func (c *compiler) forward(r row) (jump, land part) {
	var at int
	jump = func() error {
		at = c.emit(r)
		return nil
	}
	land = func() error {
		c.program.rows[at].to = c.here()
		return nil
	}
	return jump, land
}

func (c *compiler) try(body, handler part) part {
	try, caught := c.forward(row{op: opTry})
	skip, end := c.forward(row{op: opJump})
	return c.seq(try, body, c.row(row{op: opExit}), skip, caught, handler, end)
}

func (c *compiler) finally(body, finalizer part) part {
	try, caught := c.forward(row{op: opTry})
	return c.seq(try, body, c.row(row{op: opExit}), caught, finalizer)
}

func (c *compiler) ifNosave(test, consequent, alternate part) part {
	branch, otherwise := c.forward(row{op: opBranch})
	skip, end := c.forward(row{op: opJump})
	return c.seq(test, branch, consequent, skip, otherwise, alternate, end)
}

func (c *compiler) whileNosave(test, body part) part {
	branch, end := c.forward(row{op: opBranch})
	return func() error {
		again := row{op: opJump, to: c.here()}
		return c.seq(test, branch, body, c.row(again), end)()
	}
}

func (c *compiler) dowhileNosave(body, test part) part {
	branch, end := c.forward(row{op: opBranch})
	return func() error {
		again := row{op: opJump, to: c.here()}
		return c.seq(body, test, branch, c.row(again), end)()
	}
}

// Those that composer lowers to the ones above (composer.js, `lowerer`).

// withParams saves the value in a variable around the rest, which the document's own parts cannot see through a mask.
func (c *compiler) withParams(rest part) part {
	return c.let(members{"params": json.RawMessage("null")}, c.finally(c.builtin(saveParams), rest))
}

// restored gives the saved value to body.
func (c *compiler) restored(body part) part {
	return c.finally(c.builtin(loadParams), body)
}

func (c *compiler) ifSave(test, consequent, alternate part) part {
	return c.withParams(c.ifNosave(c.mask(test), c.restored(c.mask(consequent)), c.restored(c.mask(alternate))))
}

func (c *compiler) while(test, body part) part {
	turn := c.restored(c.seq(c.mask(body), c.builtin(saveParams)))
	return c.withParams(c.seq(c.whileNosave(c.mask(test), turn), c.builtin(loadParams)))
}

func (c *compiler) dowhile(body, test part) part {
	turn := c.restored(c.seq(c.mask(body), c.builtin(saveParams)))
	return c.withParams(c.seq(c.dowhileNosave(turn, c.mask(test)), c.builtin(loadParams)))
}

func (c *compiler) retain(body part) part {
	return c.withParams(c.seq(c.mask(body), c.builtin(packParamsResult)))
}

func (c *compiler) retainCatch(body part) part {
	return c.seq(c.retain(c.finally(body, c.builtin(packResult))), c.builtin(unpackResult))
}

func (c *compiler) retry(n *node) part {
	attempt := c.finally(c.builtin(pickParams), c.mask(c.retainCatch(c.components(n))))
	return c.let(counter(n), c.seq(
		c.builtin(packParams),
		c.dowhile(attempt, c.builtin(failedAndCount)),
		c.builtin(pickResult)))
}
