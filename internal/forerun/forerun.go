// Package forerun is the vocabulary of the house: names, ids, values, actions,
// activation records, versions, errors and the small interfaces that rooms
// speak through. It promises to import the standard library alone, to do no
// I/O and to hold no state; every other package may import it.
//
// The words are those of ARCHITECTURE.md: an action is a deployed function, an
// activation one execution of it, an invocation one client request, a slot one
// function execution in the pipeline.
package forerun
