package dev.forerun.offload.graph;

/** What generated classes implement whose objects stand, in a function, for objects that stay on the server. */
public interface Stub {
  /** Such an object that JDK code must not get: the class has a JDK class above it that might look into its empty fields. */
  interface Opaque extends Stub {}
}
