/**
 * Changes of class files, made on the server alone: entry checks of roots, and the hooks of what is sent to functions.
 */
package dev.forerun.offload.weave;
