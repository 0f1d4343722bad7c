package dev.forerun.offload.agent;

import dev.forerun.offload.graph.Rules;
import dev.forerun.offload.weave.ServerWeaver;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** What -javaagent starts. Whatever goes wrong here, the application runs as it does without it. */
public final class Agent {
  private Agent() {}

  /** Called by the JVM before the application's main method. */
  public static void premain(String given, Instrumentation instrumentation) {
    try {
      Options options = Options.parse(given, System.getenv());
      if (options.mode().equals("off")) {
        log("nothing is offloaded: that needs mode=auto, or roots=CLASS#METHOD and mode=force");
        return;
      }
      start(options, instrumentation);
    } catch (Exception | LinkageError e) {
      log("nothing is offloaded: " + e.getMessage());
    }
  }

  private static void start(Options options, Instrumentation instrumentation) throws Exception {
    Set<Module> ours = Set.of(Agent.class.getModule());
    instrumentation.redefineModule(Object.class.getModule(), Set.of(), Map.of(), Map.of("java.lang.invoke", ours), Set.of(), Map.of());
    Path jar = Path.of(Agent.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    Map<String, byte[]> generated = new ConcurrentHashMap<>();
    Gateway gateway = new Gateway(options.server(), options.key(), jar, options.silence());
    Offloader offloader = new Offloader(gateway, Rules.ofServer(options::isApplication), options.reads(), generated, Agent::log);
    if (options.mode().equals("auto")) {
      Entry.follow(new Follower(offloader, options.roots(), Runtime.getRuntime().availableProcessors()));
    }
    instrumentation.addTransformer(new Transformer(options, generated, offloader));
    Entry.use(offloader);
    new Reporter(gateway, offloader, options.name()).start();
  }

  private static void log(String line) {
    System.err.println("forerun offload: " + line);
  }

  /** Weaves classes of the application as they are loaded, and keeps those that were made at run time. */
  private record Transformer(Options options, Map<String, byte[]> generated, Offloader offloader) implements ClassFileTransformer {
    @Override
    public byte[] transform(ClassLoader loader, String internal, Class<?> redefined, ProtectionDomain domain, byte[] file) {
      if (internal == null || loader == null) {
        return null;
      }
      String name = internal.replace('/', '.');
      if (redefined != null) { // this is not called when another agent has a class changed again as it was loaded
        if (options.isApplication(name)) {
          offloader.stop(name + " was redefined");
        }
        return null;
      }
      try {
        if (name.contains("$$")) {
          generated.put(name, file);
        }
        return options.isApplication(name) && !name.contains("$$") ? ServerWeaver.weave(file, options.roots(), options.mode().equals("auto")) : null;
      } catch (RuntimeException | LinkageError e) {
        log("%s is not changed: %s".formatted(name, e));
        return null;
      }
    }
  }
}
