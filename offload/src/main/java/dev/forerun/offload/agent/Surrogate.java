package dev.forerun.offload.agent;

import dev.forerun.offload.graph.Effects;
import dev.forerun.offload.graph.Heap;
import dev.forerun.offload.graph.Members;
import dev.forerun.offload.graph.Plain;
import dev.forerun.offload.wire.In;
import dev.forerun.offload.wire.Link;
import dev.forerun.offload.wire.Malformed;
import dev.forerun.offload.wire.Out;
import dev.forerun.offload.wire.Refused;
import dev.forerun.offload.wire.Type;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.Charset;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TimeZone;
import java.util.concurrent.locks.Lock;

/**
 * The request's thread in the place of its call: it sends the call, then serves what the function asks for until the result is there.
 * So transactions, monitors and thread locals are this thread's.
 */
final class Surrogate {
  /** Static methods of the JDK that a function may have called here, besides those that only tell something. */
  private static final Set<String> STATIC =
      Set.of("java/nio/file/Files", "java/sql/DriverManager", "java/util/ServiceLoader", "java/lang/management/ManagementFactory");

  private static final Set<String> SETTING = Set.of("setProperty", "clearProperty");
  private static final Set<String> WAITING = Set.of("sleep", "interrupted", "holdsLock");

  private final Link link;
  private final Session session;
  private final Heap heap;
  private final Reads reads;
  private final String root;
  private final boolean isShadow;
  private final Lines lines = new Lines();
  private final Map<String, Method> methods = new HashMap<>();
  private final Set<Object> iterators = Collections.newSetFromMap(new IdentityHashMap<>()); // that the call asked for: a repetition has its own
  private final Map<Type, Integer> exchanges = new EnumMap<>(Type.class);
  private final ArrayDeque<Lock> held = new ArrayDeque<>();
  private String visible;
  private long nanosThere;

  /** What a call came to. */
  record Result(boolean isThrown, Object value) {}

  /** Serves a call; a shadow's has no effect here, and is refused where it cannot go on without one. */
  Surrogate(Link link, Session session, Reads reads, String root, boolean isShadow) {
    this.isShadow = isShadow;
    this.link = link;
    this.reads = reads;
    this.session = session;
    this.heap = session.heap;
    this.root = root;
  }

  /** The first effect of the call that others may have seen; null: it can still be run here. */
  String visible() {
    return visible;
  }

  /** The number of frames that the function sent, by type. */
  Map<Type, Integer> exchanges() {
    return exchanges;
  }

  /** Bytes to the function. */
  long sent() {
    return link.sent();
  }

  /** Bytes from the function. */
  long received() {
    return link.received();
  }

  /** CPU time of the root in the function. */
  long nanosThere() {
    return nanosThere;
  }

  private void see(String effect) {
    if (visible == null) {
      visible = effect;
      lines.release();
    }
  }

  /** Packs the call. */
  Out start(Object self, Object[] parameters) {
    Out out = new Out().u8(session.calls == 0 ? 1 : 0);
    out.name(TimeZone.getDefault().getID()).name(Locale.getDefault().toLanguageTag()).name(Charset.defaultCharset().name());
    session.forget(out);
    out.name(root);
    List<Object> roots = new ArrayList<>(Arrays.asList(parameters));
    roots.add(self);
    heap.write(out, roots, List.of());
    if (heap.isPinned(self)) {
      throw new Refused("%s stays on the server: it is not of the application, or was generated".formatted(self.getClass().getName()));
    }
    out.i32(heap.idOf(self)).i32(parameters.length);
    for (Object parameter : parameters) {
      out.i32(heap.idOf(parameter));
    }
    heap.dry(isShadow);
    return out;
  }

  /** Sends the call, and serves it until its result. */
  Result run(Out start) throws IOException {
    link.send(Type.START, start);
    Result result = serve(null);
    heap.dry(false);
    return result;
  }

  /** Serves frames until the result; within a monitor until it is given back, then null. */
  private Result serve(Object monitor) throws IOException {
    while (true) {
      Link.Received received = link.receive();
      In in = received.body();
      exchanges.merge(received.type(), 1, Integer::sum);
      switch (received.type()) {
        case CLASS -> reply(new Out().blob(session.application.file(in.name())));
        case STATICS -> statics(in);
        case INVOKE -> invoke(in);
        case ASK -> ask(in);
        case LINE -> {
          if (!isShadow) {
            line(in);
          }
        }
        case PRINT -> {
          if (!isShadow) {
            print(in);
          }
        }
        case GET -> get(in);
        case PUT -> put(in);
        case HASH -> reply(new Out().i32(System.identityHashCode(heap.object(in.i32()))));
        case SYNC -> {
          read(in, "a shared object changed");
          delta(List.of());
        }
        case LOCK -> {
          Result result = lock(in);
          if (result != null) {
            return result;
          }
        }
        case UNLOCK -> {
          read(in, "a shared object changed");
          if (monitor == null || heap.object(in.i32()) != monitor) {
            throw new Malformed("a monitor is given back that was not taken last");
          }
          return null;
        }
        case RESULT, THROWN -> {
          if (monitor != null) {
            throw new Malformed("the call ended with a monitor held");
          }
          return result(in, received.type() == Type.THROWN);
        }
        case REFUSED -> throw new Refused(in.name());
        default -> throw new Malformed("a function sends " + received.type());
      }
    }
  }

  private void read(In in, String effect) {
    boolean changed = true; // if it fails, a part may be written
    try {
      changed = heap.read(in);
    } finally {
      if (changed) {
        see(effect);
      }
    }
  }

  private void reply(Out out) throws IOException {
    link.send(Type.REPLY, out);
  }

  private void delta(List<?> roots) throws IOException {
    Out out = new Out();
    heap.write(out, roots, List.of());
    reply(out);
  }

  private void statics(In in) throws IOException {
    String name = in.name();
    try {
      Class<?> type = Class.forName(name, true, session.loader());
      Out out = new Out();
      heap.write(out, List.of(), List.of(type));
      reply(out);
    } catch (ClassNotFoundException e) {
      throw new Malformed("there is no class " + name);
    }
  }

  private Result lock(In in) throws IOException {
    read(in, "a shared object changed");
    Object monitor = heap.object(in.i32());
    synchronized (isShadow ? new Object() : monitor) { // a shadow's monitors are its own
      delta(List.of());
      Result result = serve(monitor);
      if (result == null) {
        reply(empty());
      }
      return result;
    }
  }

  private Out empty() {
    Out out = new Out();
    heap.write(out, List.of(), List.of());
    return out;
  }

  private void invoke(In in) throws IOException {
    read(in, "a shared object changed");
    Object target = heap.object(in.i32());
    String owner = in.name();
    String name = in.name();
    String descriptor = in.name();
    Object[] parameters = new Object[in.count(4)];
    for (int i = 0; i < parameters.length; i++) {
      parameters[i] = heap.object(in.i32());
    }
    Method method = method(target, owner, name, descriptor);
    if (!isKnownRead(target, owner, name) && (target == null || !reads.isRead(method, target))) {
      String call = "call of %s.%s".formatted(owner.replace('/', '.'), name);
      if (isShadow) {
        skip(method, call);
        return;
      }
      see(call);
    }
    invoke(target, method, parameters);
  }

  /** A shadow goes on without a call that tells it nothing. */
  private void skip(Method method, String call) throws IOException {
    if (method.getReturnType() != void.class) {
      throw new Refused("a shadow cannot tell the result of a " + call);
    }
    Out out = new Out().u8(0);
    heap.write(out, List.of(), List.of());
    reply(out.i32(0));
  }

  private void ask(In in) throws IOException {
    Object target = heap.object(in.i32());
    String owner = in.name();
    String name = in.name();
    Method method = method(target, owner, name, in.name());
    if (!isKnownRead(target, owner, name)) {
      throw new Malformed("%s.%s does more than tell something".formatted(owner, name));
    }
    invoke(target, method, Plain.read(in, heap));
  }

  private void line(In in) {
    Object logger = heap.object(in.i32());
    String owner = in.name();
    String name = in.name();
    String descriptor = in.name();
    if (logger == null || !Effects.isLine(logger.getClass(), name, descriptor)) {
      throw new Malformed("%s.%s writes no line".formatted(owner, name));
    }
    Method method = method(logger, owner, name, descriptor);
    Object[] parameters = Plain.read(in, heap);
    hold(
        () -> {
          try {
            method.invoke(logger, parameters);
          } catch (ReflectiveOperationException | IllegalArgumentException e) {
            System.err.println("forerun offload: a line of %s is lost: %s".formatted(root, e));
          }
        });
  }

  private void print(In in) {
    PrintStream to = in.u8() == 1 ? System.out : System.err;
    String text = in.text();
    hold(() -> to.print(text));
  }

  private void hold(Runnable line) {
    if (lines.add(line)) {
      see("lines of a log");
    }
  }

  private void invoke(Object target, Method method, Object[] parameters) throws IOException {
    Object result;
    boolean isThrown = false;
    try {
      result = method.invoke(target, parameters);
    } catch (InvocationTargetException e) {
      result = e.getCause();
      isThrown = true;
    } catch (IllegalAccessException | IllegalArgumentException e) {
      throw new Malformed("%s cannot be called so: %s".formatted(method, e));
    }
    if (target instanceof Lock lock && !isThrown) {
      count(lock, method.getName(), result);
    }
    if (result instanceof Iterator && method.getName().equals("iterator")) {
      iterators.add(result);
    }
    Out out = new Out().u8(isThrown ? 1 : 0);
    heap.write(out, Collections.singletonList(result), List.of());
    reply(out.i32(heap.idOf(result)));
  }

  private void count(Lock lock, String method, Object result) {
    if (method.equals("unlock")) {
      held.removeLastOccurrence(lock);
    } else if (method.equals("lock") || method.equals("lockInterruptibly") || method.equals("tryLock") && Boolean.TRUE.equals(result)) {
      held.add(lock);
    }
  }

  /** Gives back the locks that a lost call took and holds: the code that would do it is lost, too. */
  void release() {
    while (!held.isEmpty()) {
      held.removeLast().unlock();
    }
  }

  /** What a function may call: methods of pinned objects that it knows, monitors' methods of shared ones, and a list of statics. */
  private void allow(Object target, String owner, String name) {
    boolean isMonitors = owner.equals("java/lang/Object") && Set.of("wait", "notify", "notifyAll").contains(name);
    boolean isListed = target == null
        && (STATIC.contains(owner) || owner.equals("java/lang/System") && SETTING.contains(name)
            || owner.equals("java/lang/Thread") && WAITING.contains(name) || Effects.tells(null, owner, name));
    if (target == null ? !isListed : !heap.isPinned(target) && !isMonitors) {
      throw new Malformed("a function may not call %s.%s".formatted(owner, name));
    }
  }

  private boolean isKnownRead(Object target, String owner, String name) {
    return Effects.tells(target == null ? null : target.getClass(), owner, name)
        || target == null && owner.equals("java/lang/Thread") && !name.equals("interrupted")
        || target != null && (Effects.reads(target.getClass(), name) || name.equals("next") && iterators.contains(target))
        || target != null && target.getClass().getName().startsWith("java.util.ImmutableCollections$");
  }

  /** The method that a function names, if it may call it on this object. */
  private Method method(Object target, String owner, String name, String descriptor) {
    allow(target, owner, name);
    Method method = method(owner, name, descriptor);
    if (target == null != Modifier.isStatic(method.getModifiers()) || target != null && !method.getDeclaringClass().isInstance(target)) {
      throw new Malformed("an object has no method %s.%s".formatted(owner, name));
    }
    return method;
  }

  private Method method(String owner, String name, String descriptor) {
    String key = owner + "." + name + descriptor;
    Method known = methods.get(key);
    if (known == null) {
      try {
        known = Members.method(owner, name, descriptor, session.loader());
      } catch (ReflectiveOperationException e) {
        throw new Malformed("there is no method " + key);
      }
      methods.put(key, known);
    }
    return known;
  }

  private void get(In in) throws IOException {
    Object target = pinned(in);
    try {
      Object value = Members.get(target, in.name(), in.name(), session.loader());
      Out out = new Out();
      heap.write(out, Collections.singletonList(value), List.of());
      reply(out.i32(heap.idOf(value)));
    } catch (ReflectiveOperationException e) {
      throw new Malformed("there is no such field: " + e.getMessage());
    }
  }

  private void put(In in) throws IOException {
    read(in, "a shared object changed");
    Object target = pinned(in);
    String owner = in.name();
    String name = in.name();
    if (isShadow) {
      throw new Refused("a shadow cannot set the field %s.%s".formatted(owner.replace('/', '.'), name));
    }
    see("field %s.%s".formatted(owner.replace('/', '.'), name));
    try {
      Members.put(target, owner, name, session.loader(), heap.object(in.i32()));
      reply(new Out());
    } catch (ReflectiveOperationException e) {
      throw new Malformed("there is no such field: " + e.getMessage());
    }
  }

  private Object pinned(In in) {
    Object target = heap.object(in.i32());
    if (!heap.isPinned(target)) {
      throw new Malformed("a field of an object is asked for that is not pinned");
    }
    return target;
  }

  private Result result(In in, boolean isThrown) {
    Object value;
    boolean isWhole = false;
    try {
      heap.read(in);
      value = heap.object(in.i32());
      nanosThere = in.i64();
      isWhole = true;
    } finally {
      if (!isWhole) {
        see("a part of the result"); // it may have been written
      }
    }
    if (isThrown && !(value instanceof Throwable)) {
      throw new Malformed("what was thrown is no exception");
    }
    if (isThrown) {
      Stacks.join((Throwable) value);
    }
    lines.release();
    return new Result(isThrown, value);
  }
}
