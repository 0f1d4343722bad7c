/**
 * Objects to bytes and back, with their identity: the same code on the server and in a function. A delta carries what is new and what changed since the last one.
 */
package dev.forerun.offload.graph;
