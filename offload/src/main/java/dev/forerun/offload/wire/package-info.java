/**
 * The frames between server and function, and the values in them (PROTOCOL.md). It knows nothing of objects.
 */
package dev.forerun.offload.wire;
