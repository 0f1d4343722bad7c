package dev.forerun.offload.function;

import dev.forerun.offload.graph.Effects;
import dev.forerun.offload.graph.Heap;
import dev.forerun.offload.graph.Members;
import dev.forerun.offload.graph.Plain;
import dev.forerun.offload.graph.Types;
import dev.forerun.offload.weave.FunctionWeaver;
import dev.forerun.offload.wire.In;
import dev.forerun.offload.wire.Link;
import dev.forerun.offload.wire.Out;
import dev.forerun.offload.wire.Refused;
import dev.forerun.offload.wire.Type;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * A server's session at its function's end: the classes and objects that came from there. It lasts over calls, which come one at a
 * time. All exchanges are made by the call's own thread.
 */
final class Realm extends ClassLoader implements Types {
  private static final String OURS = "dev.forerun.offload.";
  private static final long MAX_SLEEP_MILLIS = 500;

  final Heap heap;
  private final Map<Class<?>, Class<?>> realClasses = new HashMap<>();
  private final Map<Object, Integer> held = new IdentityHashMap<>(); // monitors of objects that the server does not know
  private Link link;
  private Thread thread;
  private String refusal;

  Realm() {
    super(ClassLoader.getPlatformClassLoader()); // without a name, which stack traces would show
    this.heap = Heap.ofFunction(this);
  }

  /** Begins a call: from now on the server is asked over a link, by this thread. */
  void begin(Link link) {
    this.link = link;
    this.thread = Thread.currentThread();
    this.refusal = null;
    held.clear();
  }

  /** Ends the call. */
  void end() {
    thread = null;
  }

  /** Why the call is refused; null if it is not. Code of the application may have swallowed the error. */
  String refusal() {
    return refusal;
  }

  @Override
  protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
    if (name.startsWith(OURS) && !name.startsWith(OURS + "stub.")) {
      return Class.forName(name, false, Realm.class.getClassLoader());
    }
    return super.loadClass(name, resolve);
  }

  @Override
  protected Class<?> findClass(String name) throws ClassNotFoundException {
    byte[] file = exchange(Type.CLASS, new Out().name(name)).blob();
    if (file.length == 0) {
      throw new ClassNotFoundException(name);
    }
    int dot = name.lastIndexOf('.');
    if (dot > 0 && getDefinedPackage(name.substring(0, dot)) == null) {
      definePackage(name.substring(0, dot), null, null, null, null, null, null, null);
    }
    return defineClass(name, file, 0, file.length);
  }

  @Override
  public ClassLoader loader() {
    return this;
  }

  @Override
  public String stubOf(Object pinned) {
    throw refuse("an object of " + pinned.getClass().getName() + " was made in the function and cannot move to the server");
  }

  @Override
  public void fetchStatics(Class<?> type) {
    heap.whenComplete(() -> read(exchange(Type.STATICS, new Out().name(type.getName()))));
  }

  /** Refuses the call; the first reason stays. */
  Refused refuse(String what) {
    String reason = what + place();
    if (refusal == null) {
      refusal = reason;
    }
    return new Refused(reason);
  }

  /** Where in the application's code this is. */
  private static String place() {
    for (StackTraceElement frame : new Throwable().getStackTrace()) {
      String owner = frame.getClassName();
      boolean isOurs = owner.startsWith("dev.forerun.") || frame.getMethodName().startsWith(FunctionWeaver.ADDED);
      if (!isOurs && !owner.startsWith("java.") && !owner.startsWith("jdk.")) {
        return " (" + owner + "." + frame.getMethodName() + ", line " + frame.getLineNumber() + ")";
      }
    }
    return "";
  }

  /** Sends a frame and waits for its answer. Any failure ends the call. */
  private In exchange(Type type, Out out) {
    if (Thread.currentThread() != thread) {
      throw refuse("a thread other than the call's needs the server");
    }
    try {
      link.send(type, out);
      Link.Received received = link.receive();
      if (received.type() == Type.REPLY) {
        return received.body();
      }
      throw refuse("the server answers with " + received.type());
    } catch (IOException e) {
      throw refuse("the server is lost: " + e.getMessage());
    } catch (RuntimeException | StackOverflowError | OutOfMemoryError e) {
      throw refuse("the exchange with the server failed: " + e);
    }
  }

  /** Sends a frame that has no answer. */
  private Object tell(Type type, Out out) {
    if (Thread.currentThread() != thread) {
      throw refuse("a thread other than the call's needs the server");
    }
    try {
      link.send(type, out);
      return null;
    } catch (IOException e) {
      throw refuse("the server is lost: " + e.getMessage());
    }
  }

  /** Prints on the server, and reports whether that is where it belongs: not what other threads print, or what is printed between calls. */
  boolean print(int stream, String text) {
    if (Thread.currentThread() != thread || refusal != null) {
      return false;
    }
    tell(Type.PRINT, new Out().u8(stream).text(text));
    return true;
  }

  private void read(In in) {
    try {
      heap.read(in);
    } catch (Refused e) {
      throw refuse(e.getMessage());
    } catch (RuntimeException | StackOverflowError | OutOfMemoryError | LinkageError e) {
      throw refuse("what the server sent cannot be read: " + e);
    }
  }

  /** A delta with what roots refer to. */
  Out delta(List<?> roots) {
    Out out = new Out();
    if (refusal != null) {
      throw new Refused(refusal); // the two ends may know different things by now
    }
    try {
      heap.write(out, roots, List.of());
    } catch (Refused e) {
      throw refuse(e.getMessage());
    } catch (RuntimeException | StackOverflowError | OutOfMemoryError e) {
      throw refuse("objects cannot be packed: " + e);
    }
    for (Object object : held.keySet()) {
      if (heap.isShared(object)) {
        throw refuse("an object of %s becomes known to the server while its monitor is held".formatted(object.getClass().getName()));
      }
    }
    return out;
  }

  Object invoke(Object object, String owner, String name, String descriptor, Object[] parameters) throws Throwable {
    if (object != null && !heap.isShared(object)) {
      throw refuse("a stand-in of %s outlived its object".formatted(object.getClass().getName()));
    }
    Class<?> type = object == null ? null : object.getClass();
    boolean isLine = type != null && Effects.isLine(type, name, descriptor);
    if ((isLine || Effects.tells(type, owner, name)) && Plain.are(parameters, heap)) {
      Out plain = Plain.write(new Out().i32(heap.idOf(object)).name(owner).name(name).name(descriptor), parameters, heap);
      return isLine ? tell(Type.LINE, plain) : result(exchange(Type.ASK, plain), owner, name, descriptor);
    }
    Out out = delta(Arrays.asList(parameters));
    out.i32(heap.idOf(object)).name(owner).name(name).name(descriptor).i32(parameters.length);
    for (Object parameter : parameters) {
      out.i32(heap.idOf(parameter));
    }
    return result(exchange(Type.INVOKE, out), owner, name, descriptor);
  }

  private Object result(In in, String owner, String name, String descriptor) throws Throwable {
    boolean isThrown = in.u8() == 1;
    read(in);
    Object result = heap.object(in.i32());
    if (isThrown) {
      throw (Throwable) result;
    }
    Class<?> type = Members.resultType(descriptor, this);
    if (result != null && !type.isPrimitive() && !type.isInstance(result)) {
      throw refuse("%s.%s returns an object of %s, which cannot stand for a %s here"
          .formatted(owner.replace('/', '.'), name, result.getClass().getName(), type.getName()));
    }
    return result;
  }

  void touch(Object object, String owner, String name) {
    In in = exchange(Type.GET, new Out().i32(heap.idOf(object)).name(owner).name(name));
    read(in);
    try {
      Members.put(object, owner, name, this, heap.object(in.i32()));
    } catch (Refused | ReflectiveOperationException e) {
      throw refuse(e.getMessage());
    }
  }

  void stored(Object object, String owner, String name) {
    try {
      Object value = Members.get(object, owner, name, this);
      List<Object> roots = new ArrayList<>();
      roots.add(value);
      exchange(
          Type.PUT,
          delta(roots).i32(heap.idOf(object)).name(owner).name(name).i32(heap.idOf(value)));
    } catch (ReflectiveOperationException e) {
      throw refuse(e.getMessage());
    }
  }

  void sync() {
    read(exchange(Type.SYNC, delta(List.of())));
  }

  private boolean isOfServer(Object object) {
    return heap.isShared(object) || object instanceof Class<?> type && type.getClassLoader() == this;
  }

  void enter(Object object) {
    if (object == null) {
      return; // the instruction itself throws
    }
    if (!isOfServer(object)) {
      held.merge(object, 1, Integer::sum);
      return;
    }
    Out out = delta(List.of(object));
    read(exchange(Type.LOCK, out.i32(heap.idOf(object))));
  }

  void exit(Object object) {
    if (refusal != null || object == null) {
      return; // the call ends, and its monitors on the server with it; an error here would have the handler of javac turn in circles
    }
    if (held.containsKey(object)) {
      held.merge(object, -1, (count, less) -> count + less == 0 ? null : count + less);
      return;
    }
    read(exchange(Type.UNLOCK, delta(List.of()).i32(heap.idOf(object))));
  }

  boolean holdsLock(Object object) {
    try {
      Objects.requireNonNull(object);
      return held.containsKey(object)
          || isOfServer(object) && (boolean) invoke(null, "java/lang/Thread", "holdsLock", "(Ljava/lang/Object;)Z", new Object[] {object});
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** Sleeps on the server, where an interrupt reaches; in parts, so that each end notices if the other is lost. */
  void sleep(long millis) throws Throwable {
    long left = millis;
    do {
      long part = Math.min(left, MAX_SLEEP_MILLIS);
      invoke(null, "java/lang/Thread", "sleep", "(J)V", new Object[] {part});
      left -= part;
    } while (left > 0);
  }

  void await(Object object, String name, String descriptor, Object... parameters) throws Throwable {
    if (isOfServer(object)) {
      invoke(object, "java/lang/Object", name, descriptor, parameters);
    } else if (name.equals("wait")) {
      throw refuse("an object of %s is waited for that no other thread knows".formatted(object.getClass().getName()));
    }
  }

  Class<?> classOf(Object stub) throws Throwable {
    Class<?> known = realClasses.get(stub.getClass());
    if (known == null) {
      known = (Class<?>) invoke(stub, "java/lang/Object", "getClass", "()Ljava/lang/Class;", new Object[0]);
      realClasses.put(stub.getClass(), known);
    }
    return known;
  }

  int identityHashCode(Object object) {
    return heap.isShared(object)
        ? exchange(Type.HASH, new Out().i32(heap.idOf(object))).i32()
        : System.identityHashCode(object);
  }
}
