/**
 * The handler of Java actions: it loads a jar, then serves one activation after the other over the
 * runtime protocol (runtimes/PROTOCOL.md) on descriptor 3.
 */
package dev.forerun.runtime;
