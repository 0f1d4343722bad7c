package dev.forerun.offload.graph;

/** What a heap has to know of the classes at its end. */
public interface Types {
  /** The loader of the application's classes. */
  ClassLoader loader();

  /** The name of the generated class that stands for a pinned object. Only a server is asked. */
  String stubOf(Object pinned);

  /** A class that statics are wanted of was initialized while a delta is read. Only a function is asked. */
  void fetchStatics(Class<?> type);
}
