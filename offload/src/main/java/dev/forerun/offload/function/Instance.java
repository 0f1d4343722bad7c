package dev.forerun.offload.function;

import dev.forerun.offload.graph.Members;
import dev.forerun.offload.graph.Memory;
import dev.forerun.offload.weave.FunctionWeaver;
import dev.forerun.offload.wire.In;
import dev.forerun.offload.wire.Link;
import dev.forerun.offload.wire.Malformed;
import dev.forerun.offload.wire.Out;
import dev.forerun.offload.wire.Refused;
import dev.forerun.offload.wire.Type;
import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.nio.charset.Charset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TimeZone;
import java.util.UUID;

/** A process of the function. It keeps the realm of the server whose calls it served, until that server has forgotten it. */
public final class Instance {
  private static final long HEARTBEAT_MILLIS = 500;

  private final UUID id = UUID.randomUUID();
  private Realm realm = new Realm();
  private Map<String, MethodHandle> roots = new HashMap<>();
  private int calls;

  /** What a call came to, for the activation's record. */
  public record Outcome(String root, String ending, String reason) {}

  /** Serves one call over a link. */
  public synchronized Outcome serve(Link link) throws IOException {
    link.send(
        Type.HELLO,
        new Out()
            .i32(Link.VERSION)
            .i32(Runtime.version().feature())
            .i64(id.getMostSignificantBits())
            .i64(id.getLeastSignificantBits())
            .i32(calls));
    Link.Received start = link.receive();
    if (start.type() != Type.START) {
      throw new Malformed("a call begins with " + start.type());
    }
    Thread heartbeat = new Thread(() -> beat(link), "offload-heartbeat");
    heartbeat.setDaemon(true);
    heartbeat.start();
    Locale locale = Locale.getDefault();
    TimeZone zone = TimeZone.getDefault();
    Outcome outcome;
    try {
      outcome = answer(link, start.body());
    } finally {
      heartbeat.interrupt();
      Locale.setDefault(locale);
      TimeZone.setDefault(zone);
    }
    awaitEnd(link);
    return outcome;
  }

  /** The activation's end closes its connections: it comes after the server has read the last frame. */
  private static void awaitEnd(Link link) {
    try {
      link.awaitEnd();
    } catch (IOException e) {
      // a reset is an end, too
    }
  }

  private static void beat(Link link) {
    try {
      while (true) {
        Thread.sleep(HEARTBEAT_MILLIS);
        link.send(Type.PING, new Out());
      }
    } catch (InterruptedException | IOException e) {
      // the call is over, or its own thread will notice
    }
  }

  private Outcome answer(Link link, In in) throws IOException {
    if (in.u8() == 1) {
      realm = new Realm();
      roots = new HashMap<>();
      calls = 0;
    }
    int served = calls;
    calls = -1; // unless all goes well no server says so, and the realm is not used again
    Hooks.realm = realm;
    realm.begin(link);
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    Thread.currentThread().setContextClassLoader(realm);
    String root = "";
    try {
      TimeZone.setDefault(TimeZone.getTimeZone(in.name()));
      Locale.setDefault(Locale.forLanguageTag(in.name()));
      String charset = in.name();
      if (!charset.equals(Charset.defaultCharset().name())) {
        throw new Refused("the application's default charset is %s, the function's %s".formatted(charset, Charset.defaultCharset()));
      }
      List<Integer> forgotten = new ArrayList<>();
      for (int count = in.count(4); count > 0; count--) {
        forgotten.add(in.i32());
      }
      realm.heap.forget(forgotten);
      root = in.name();
      Outcome outcome = run(link, root, in);
      if (!outcome.ending.equals("refused")) {
        calls = served + 1;
      }
      return outcome;
    } catch (Refused e) {
      return refused(link, root, realm.refusal() != null ? realm.refusal() : e.getMessage());
    } catch (IOException e) {
      throw e;
    } catch (Throwable e) {
      return refused(link, root, "the function's runtime failed: " + e);
    } finally {
      realm.end();
      Thread.currentThread().setContextClassLoader(loader);
    }
  }

  private Outcome refused(Link link, String root, String reason) throws IOException {
    link.send(Type.REFUSED, new Out().name(reason));
    return new Outcome(root, "refused", reason);
  }

  private Outcome run(Link link, String root, In in) throws Throwable {
    realm.heap.read(in);
    Object self = realm.heap.object(in.i32());
    Object[] all = new Object[1 + in.count(4)];
    all[0] = self;
    for (int i = 1; i < all.length; i++) {
      all[i] = realm.heap.object(in.i32());
    }
    long before = cpu();
    Object result;
    boolean isThrown = false;
    try {
      result = root(root).invokeWithArguments(all);
    } catch (Refused e) {
      throw e;
    } catch (OutOfMemoryError e) {
      throw new Refused("the function ran out of memory: " + e.getMessage());
    } catch (Throwable e) {
      shorten(e, Collections.newSetFromMap(new IdentityHashMap<>()));
      result = e;
      isThrown = true;
    }
    if (realm.refusal() != null) {
      return refused(link, root, realm.refusal());
    }
    Out out = realm.delta(Collections.singletonList(result)).i32(realm.heap.idOf(result)).i64(cpu() - before);
    link.send(isThrown ? Type.THROWN : Type.RESULT, out);
    return new Outcome(root, isThrown ? "thrown" : "returned", "");
  }

  private static long cpu() {
    return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
  }

  /** A root as a method that is not overridden: the server's check is in the very method. */
  private MethodHandle root(String root) throws ReflectiveOperationException {
    MethodHandle known = roots.get(root);
    if (known == null) {
      int hash = root.indexOf('#');
      int type = root.indexOf('(');
      if (hash < 0 || type < hash) {
        throw new Malformed("a root is not a method: " + root);
      }
      Method method = Members.method(root.substring(0, hash).replace('.', '/'), root.substring(hash + 1, type), root.substring(type), realm);
      known = Memory.ALL.in(method.getDeclaringClass()).unreflectSpecial(method, method.getDeclaringClass());
      roots.put(root, known);
    }
    return known;
  }

  /** Leaves the frames of this runtime out of an exception's stack; those of the server come in their place. */
  private static void shorten(Throwable thrown, Set<Throwable> seen) {
    if (thrown == null || !seen.add(thrown)) {
      return;
    }
    StackTraceElement[] frames = thrown.getStackTrace();
    int end = frames.length;
    for (int i = frames.length - 1; i >= 0; i--) {
      if (frames[i].getClassName().equals(Instance.class.getName()) && frames[i].getMethodName().equals("run")) {
        end = i;
        break;
      }
    }
    while (end > 0 && (frames[end - 1].getClassName().startsWith("java.lang.invoke.") || frames[end - 1].getClassName().startsWith("jdk.internal."))) {
      end--;
    }
    thrown.setStackTrace(
        Arrays.stream(frames, 0, end)
            .filter(frame -> !frame.getMethodName().startsWith(FunctionWeaver.ADDED) && !frame.getClassName().startsWith("dev.forerun.offload."))
            .toArray(StackTraceElement[]::new));
    shorten(thrown.getCause(), seen);
    for (Throwable suppressed : thrown.getSuppressed()) {
      shorten(suppressed, seen);
    }
  }
}
