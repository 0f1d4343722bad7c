/**
 * The server's end: decides at the entry of a root whether the call is offloaded, and serves what the function asks for meanwhile.
 */
package dev.forerun.offload.agent;
