// Package test holds the end-to-end tests: they build the real binary, start it
// as a person would, and look at it from outside, with the clients that people
// use. They need no service to run, and leave nothing behind.
package test
