package dev.forerun.offload.agent;

import dev.forerun.offload.weave.FunctionWeaver;
import dev.forerun.offload.weave.StubMaker;
import java.io.IOException;
import java.io.InputStream;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The application's classes as functions get them: woven once each, from their files. */
final class Application {
  private static final byte[] ABSENT = {};

  private final ClassLoader loader;
  private final StubMaker stubs = new StubMaker();
  private final FunctionWeaver weaver;
  private final Map<String, byte[]> generated;
  private final Map<String, byte[]> files = new ConcurrentHashMap<>();

  /**
   * The classes of a loader.
   *
   * @param generated files of classes that have no resource, as they were made at run time; by name
   */
  Application(ClassLoader loader, Map<String, byte[]> generated) {
    this.loader = loader;
    this.generated = generated;
    this.weaver = new FunctionWeaver(loader);
  }

  ClassLoader loader() {
    return loader;
  }

  String stubOf(Class<?> type) {
    return stubs.nameOf(type);
  }

  /** The file of a class; empty if there is none. */
  byte[] file(String name) throws IOException {
    byte[] known = files.get(name);
    if (known == null) {
      byte[] stub = stubs.file(name);
      byte[] original = stub == null ? original(name) : null;
      known = stub != null ? stub : original != null ? weaver.weave(original) : ABSENT;
      files.put(name, known);
    }
    return known;
  }

  private byte[] original(String name) throws IOException {
    byte[] made = generated.get(name);
    if (made != null) {
      return made;
    }
    try (InputStream in = loader.getResourceAsStream(name.replace('.', '/') + ".class")) {
      return in == null ? null : in.readAllBytes();
    }
  }
}
