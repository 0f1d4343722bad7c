// Package controller drives invocations.
package controller
