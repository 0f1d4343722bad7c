package dev.forerun.offload.agent;

import dev.forerun.offload.graph.Rules;
import dev.forerun.offload.wire.In;
import dev.forerun.offload.wire.Json;
import dev.forerun.offload.wire.Link;
import dev.forerun.offload.wire.Malformed;
import dev.forerun.offload.wire.Refused;
import dev.forerun.offload.wire.Type;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** Decides where a root runs: in a function, unless there is none now or the root was refused once. */
public final class Offloader {
  private static final long PAUSE_NANOS = 1_000_000_000L;
  private static final int MAX_SESSIONS = 64;

  private final Functions functions;
  private final Rules rules;
  private final Reads reads;
  private final Map<String, byte[]> generated;
  private final Consumer<String> log;
  private final Map<UUID, Session> sessions = new LinkedHashMap<>(); // a call takes its own out and puts it last
  private final Map<String, Tally> tallies = new ConcurrentHashMap<>();
  private final AtomicLong offloaded = new AtomicLong();
  private volatile boolean isPaused;
  private volatile String stopped = "";
  private Application application;
  private volatile long pausedUntil = System.nanoTime();

  /**
   * Makes an offloader.
   *
   * @param rules how objects cross
   * @param reads methods of objects that stay which only read, as Class#method, besides the methods that Reads knows
   * @param generated files of classes that were made at run time, by name
   * @param log takes lines for the operator
   */
  public Offloader(Functions functions, Rules rules, Set<String> reads, Map<String, byte[]> generated, Consumer<String> log) {
    this.functions = functions;
    this.rules = rules;
    this.reads = new Reads(reads);
    this.generated = generated;
    this.log = log;
  }

  /** How many calls functions answered. */
  public long offloaded() {
    return offloaded.get();
  }

  /** Why roots run here from now on, by root. */
  public Map<String, String> refused() {
    Map<String, String> refused = new HashMap<>();
    tallies.forEach((root, tally) -> refused.put(root, tally.refused()));
    refused.values().removeIf(String::isEmpty);
    return refused;
  }

  /** Has all calls run here, or no longer. */
  void pause(boolean isPaused) {
    this.isPaused = isPaused;
  }

  /** Has all calls run here for ever: why. */
  public void stop(String why) {
    stopped = why;
    log.accept("nothing is offloaded from now on: " + why);
  }

  /** Writes what came of the calls. */
  Json report(Json json) {
    json.open().field("java", Runtime.version().feature()).field("instances", instances()).name("roots").openArray();
    new TreeMap<>(tallies).forEach((root, tally) -> tally.write(json, root));
    return json.closeArray().close();
  }

  private int instances() {
    synchronized (sessions) {
      return sessions.size();
    }
  }

  private Object local(String root, String why) {
    tally(root).local(why);
    return Entry.LOCAL;
  }

  private Tally tally(String root) {
    Tally known = tallies.get(root);
    return known != null ? known : tallies.computeIfAbsent(root, one -> new Tally());
  }

  Object call(String root, Object self, Object[] parameters) throws Throwable {
    if (isPaused) {
      return local(root, "the mode is off");
    }
    if (!stopped.isEmpty()) {
      return local(root, stopped);
    }
    if (!tally(root).refused().isEmpty() || System.nanoTime() - pausedUntil < 0) {
      return local(root, tally(root).refused().isEmpty() ? "no function was to be had within the last second" : "refused");
    }
    Greeted greeted;
    try {
      greeted = greeted();
    } catch (Refused e) {
      return ended(root, null, e);
    } catch (IOException | RuntimeException e) {
      return pause(root, e);
    }
    return call(greeted, root, self, parameters);
  }

  /** A function that has begun, and waits for a call. */
  record Greeted(Link link, UUID instance, int calls, long since) {}

  /** Has a function begin. */
  Greeted greeted() throws IOException {
    Link link = functions.open();
    boolean isGreeted = false;
    try {
      Greeted greeted = greet(link);
      isGreeted = true;
      return greeted;
    } finally {
      if (!isGreeted) {
        link.close();
      }
    }
  }

  private static Greeted greet(Link link) throws IOException {
    Link.Received hello = link.receive();
    if (hello.type() != Type.HELLO) {
      throw new Malformed("a function begins with " + hello.type());
    }
    int[] calls = new int[1];
    UUID instance = greet(hello.body(), calls);
    return new Greeted(link, instance, calls[0], System.nanoTime());
  }

  Session session(Greeted greeted, Object self) {
    return take(greeted.instance, greeted.calls, self.getClass());
  }

  Surrogate surrogate(Greeted greeted, Session session, String root, boolean isShadow) {
    return new Surrogate(greeted.link, session, reads, root, isShadow);
  }

  Rules rules() {
    return rules;
  }

  /** Whether calls may be offloaded now. */
  boolean isOn() {
    return !isPaused && stopped.isEmpty() && System.nanoTime() - pausedUntil >= 0;
  }

  /** Whether an instance that has served a call serves none now. */
  boolean hasIdle() {
    return instances() > 0;
  }

  /** Whether an instance has served a call before, and what it knows is known here. */
  boolean knows(Greeted greeted) {
    synchronized (sessions) {
      Session known = sessions.get(greeted.instance);
      return known != null && known.calls == greeted.calls;
    }
  }

  /** A call of a session ended well. */
  void keep(Greeted greeted, Session session, Object self) {
    session.ended(self);
    synchronized (sessions) {
      sessions.put(greeted.instance, session);
      if (sessions.size() > MAX_SESSIONS) { // its objects are sent again if its instance comes back
        sessions.remove(sessions.keySet().iterator().next());
      }
    }
  }

  /** A root runs here from now on. */
  void refuse(String root, String why) {
    tally(root).refused(why);
    log.accept("%s runs here from now on: %s".formatted(root, why));
  }

  /** No function is asked for within the next second. */
  void pause(Throwable e) {
    pausedUntil = System.nanoTime() + PAUSE_NANOS;
    log.accept("no function: " + e.getMessage());
  }

  private Object pause(String root, Exception e) {
    pausedUntil = System.nanoTime() + PAUSE_NANOS;
    log.accept("%s runs here: no function: %s".formatted(root, e.getMessage()));
    return local(root, "no function: " + e.getMessage());
  }

  /** Calls a root in a function that has begun. */
  Object call(Greeted greeted, String root, Object self, Object[] parameters) throws Throwable {
    try (greeted.link) {
      return over(greeted, root, self, parameters);
    }
  }

  private Object over(Greeted greeted, String root, Object self, Object[] parameters) throws Throwable {
    long before = cpu();
    Surrogate surrogate = null;
    Session session = null;
    Surrogate.Result result;
    try {
      session = session(greeted, self);
      surrogate = surrogate(greeted, session, root, false);
      result = surrogate.run(surrogate.start(self, parameters));
    } catch (IOException | RuntimeException | Refused | StackOverflowError | LinkageError e) {
      return ended(root, surrogate, e);
    }
    keep(greeted, session, self);
    offloaded.incrementAndGet();
    tally(root).served(surrogate, cpu() - before, false);
    if (result.isThrown()) {
      throw (Throwable) result.value();
    }
    return result.value();
  }

  /** CPU time of this thread; 0 where it is not to be had, as of a virtual thread. */
  static long cpu() {
    try {
      return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    } catch (UnsupportedOperationException e) {
      return 0;
    }
  }

  private static UUID greet(In hello, int[] calls) {
    int version = hello.i32();
    int feature = hello.i32();
    if (version != Link.VERSION) {
      throw new Refused("the function speaks version %d of the protocol, the agent %d".formatted(version, Link.VERSION));
    }
    if (feature != Runtime.version().feature()) {
      throw new Refused("the function runs on Java %d, the application on Java %d".formatted(feature, Runtime.version().feature()));
    }
    UUID instance = new UUID(hello.i64(), hello.i64());
    calls[0] = hello.i32();
    return instance;
  }

  /** The session of an instance, out of the table while a call uses it; a new one, with no calls, if its ends are not in step. */
  private Session take(UUID instance, int calls, Class<?> type) {
    synchronized (sessions) {
      if (application == null) {
        application = new Application(type.getClassLoader(), generated);
      }
      if (type.getClassLoader() != application.loader() && !reaches(application.loader(), type)) {
        throw new Refused("%s has another class loader than roots that were called before".formatted(type.getName()));
      }
      Session known = sessions.remove(instance);
      return known != null && known.calls == calls ? known : new Session(application, rules);
    }
  }

  private static boolean reaches(ClassLoader loader, Class<?> type) {
    try {
      Class<?> base = type;
      while (base.getName().contains("$$")) {
        base = base.getSuperclass();
      }
      return Class.forName(base.getName(), false, loader) == base;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }

  private Object ended(String root, Surrogate surrogate, Throwable e) {
    if (e instanceof Refused) {
      tally(root).refused(e.getMessage());
    }
    if (surrogate != null) {
      surrogate.release();
    }
    String visible = surrogate == null ? null : surrogate.visible();
    if (visible != null) {
      tally(root).served(surrogate, 0, true);
      log.accept("%s was lost after a visible effect (%s): %s".formatted(root, visible, e.getMessage()));
      throw new OffloadLostException(root, visible, e);
    }
    log.accept("%s runs here%s: %s".formatted(root, e instanceof Refused ? " from now on" : "", e instanceof Refused ? e.getMessage() : e));
    return local(root, e instanceof Refused ? e.getMessage() : e.toString());
  }
}
