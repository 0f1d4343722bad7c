/**
 * The function's end: a class loader that asks the server, and what woven code calls.
 */
package dev.forerun.offload.function;
