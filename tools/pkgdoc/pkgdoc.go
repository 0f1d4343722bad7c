// Package pkgdoc holds the rule that every package of this module opens with a
// comment that says what it is for. Its test reads them all; nothing imports it.
package pkgdoc
