package dev.forerun.offload.graph;

import dev.forerun.offload.wire.In;
import dev.forerun.offload.wire.Malformed;
import dev.forerun.offload.wire.Out;
import dev.forerun.offload.wire.Refused;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The objects that two ends share, each under a number: positive if it was born on the server, negative if in the function. One call
 * is under way at a time, and one end works at a time: so what changed is found by comparing with what the other end knows.
 *
 * <p>A heap is of no use after an error: its ends may know different things then.
 */
public final class Heap {
  /** How many objects a session may share. */
  static final int MAX_OBJECTS = 200_000;

  final Rules rules;
  final Types types;
  final Lambdas lambdas;
  final boolean server;
  final Map<Object, Entry> byObject = new IdentityHashMap<>();
  final Map<Integer, Entry> byId = new HashMap<>();
  final List<Entry> tracked = new ArrayList<>();
  final Map<Class<?>, State> statics = new LinkedHashMap<>();
  final Map<String, Integer> symbolsOut = new HashMap<>();
  final List<String> symbolsIn = new ArrayList<>();
  private final Set<Class<?>> checked = new HashSet<>();
  private final ArrayDeque<Runnable> afterwards = new ArrayDeque<>();
  private boolean isDry;
  private int reading;
  private int born;
  private int opaque;

  private Heap(boolean server, Rules rules, Types types) {
    this.server = server;
    this.rules = rules;
    this.types = types;
    this.lambdas = new Lambdas(types.loader());
  }

  /** A server's end. */
  public static Heap ofServer(Rules rules, Types types) {
    return new Heap(true, rules, types);
  }

  /** A function's end. */
  public static Heap ofFunction(Types types) {
    return new Heap(false, Rules.ofFunction(), types);
  }

  /** Writes a delta: what the roots refer to and the other end does not know, what changed, and the statics of classes. */
  public void write(Out out, Collection<?> roots, Collection<Class<?>> ofClasses) {
    new Writer(this).write(out, roots, ofClasses);
  }

  /**
   * Has what the other end changes noted but not done here, and changes of this end not told: a shadow's writes are dropped. What was noted
   * differs from the objects, so the next delta after that tells the other end how they are.
   */
  public void dry(boolean isDry) {
    this.isDry = isDry;
  }

  boolean isDry() {
    return isDry;
  }

  /** Reads a delta, and reports whether it changed something that was known. */
  public boolean read(In in) {
    boolean changed;
    reading++;
    try {
      changed = new Reader(this).read(in);
    } finally {
      reading--;
    }
    while (reading == 0 && !afterwards.isEmpty()) {
      afterwards.poll().run();
    }
    return changed;
  }

  /** Does something at once, or when the outermost delta is complete that is being read: until then objects are not. */
  public void whenComplete(Runnable work) {
    if (reading > 0) {
      afterwards.add(work);
    } else {
      work.run();
    }
  }

  /** Does something after the statics of all classes that a delta made known are there. */
  void last(Runnable work) {
    whenComplete(() -> afterwards.addLast(work));
    while (reading == 0 && !afterwards.isEmpty()) {
      afterwards.poll().run();
    }
  }

  /** The number of an object that both ends know; 0 for null. */
  public int idOf(Object object) {
    if (object == null) {
      return 0;
    }
    Entry entry = byObject.get(object);
    if (entry == null) {
      throw new Refused("an object of " + object.getClass().getName() + " is not shared");
    }
    return entry.id;
  }

  /** Whether both ends know an object. */
  public boolean isShared(Object object) {
    return byObject.containsKey(object);
  }

  /** The object with a number; null for 0. */
  public Object object(int id) {
    if (id == 0) {
      return null;
    }
    Entry entry = byId.get(id);
    if (entry == null) {
      throw new Malformed("no object has the number " + id);
    }
    return entry.object;
  }

  /** Whether an object stays on the server, so that a function may call it. */
  public boolean isPinned(Object object) {
    Entry entry = byObject.get(object);
    return entry != null && (entry.kind == Kind.STUB || entry.kind == Kind.OPAQUE);
  }

  /** Whether an object stands for a pinned one that code of the JDK must not get. */
  public boolean isOpaque(Object object) {
    if (object instanceof Stub) {
      return object instanceof Stub.Opaque;
    }
    if (opaque == 0 || object == null) {
      return false;
    }
    Entry entry = byObject.get(object);
    return entry != null && entry.kind == Kind.OPAQUE;
  }

  /** How many objects are shared. */
  public int size() {
    return byId.size();
  }

  /** Refuses a class that the application's loader does not know: the function would take another one of the same name. */
  void check(Class<?> type) {
    if (!server || !checked.add(type)) {
      return;
    }
    Class<?> base = type;
    while (base.isArray()) {
      base = base.getComponentType();
    }
    while (base != null && (base.isHidden() || Proxy.isProxyClass(base) || Rules.isGenerated(base))) {
      base = base.getSuperclass();
    }
    if (base == null || base.isPrimitive() || Rules.isJdk(base)) {
      return;
    }
    try {
      if (Class.forName(base.getName(), false, types.loader()) == base) {
        return;
      }
    } catch (ClassNotFoundException e) {
      // told below
    }
    checked.remove(type);
    throw new Refused("%s has another class loader than the application".formatted(base.getName()));
  }

  Entry bear(Object object, Kind kind) {
    if (byId.size() >= MAX_OBJECTS) {
      throw new Refused("the call shares more than %d objects".formatted(MAX_OBJECTS));
    }
    born++;
    return number(server ? born : -born, object, kind);
  }

  Entry bind(int id, Object object, Kind kind) {
    Entry entry = number(id, object, kind);
    if (entry.isTracked()) {
      tracked.add(entry);
    }
    return entry;
  }

  private Entry number(int id, Object object, Kind kind) {
    Entry entry = new Entry(id, object, kind);
    if (byId.put(id, entry) != null) {
      throw new Malformed("the number %d is given twice".formatted(id));
    }
    if (byId.size() > 2 * MAX_OBJECTS) {
      throw new Malformed("too many objects are shared");
    }
    byObject.putIfAbsent(object, entry); // a small box may be one object here and two there
    if (kind == Kind.OPAQUE) {
      opaque++;
    }
    return entry;
  }

  /** The classes whose statics are shared. */
  public Set<Class<?>> sharedClasses() {
    return statics.keySet();
  }

  /**
   * Forgets what is reachable neither from shared statics nor from these objects. Only the server does it, between two calls.
   *
   * @return the numbers that the other end has to forget
   */
  public List<Integer> sweep(Collection<?> kept) {
    Set<Integer> reached = new HashSet<>();
    ArrayDeque<Object> open = new ArrayDeque<>(kept);
    for (Class<?> type : statics.keySet()) {
      push(open, State.of(null, Slot.ofClass(type)).references());
    }
    while (!open.isEmpty()) {
      Entry entry = byObject.get(open.poll());
      if (entry == null || !reached.add(entry.id)) {
        continue;
      }
      State state = entry.state();
      if (state != null) {
        push(open, state.references());
      } else if (entry.kind == Kind.LAMBDA) {
        var form = Lambdas.serialized(entry.object);
        for (int i = 0; i < form.getCapturedArgCount(); i++) {
          push(open, new Object[] {form.getCapturedArg(i)});
        }
      }
    }
    List<Integer> forgotten = new ArrayList<>();
    for (Entry entry : byId.values()) {
      if (!reached.contains(entry.id) && entry.kind != Kind.CLASS && byObject.get(entry.object) == entry) {
        forgotten.add(entry.id);
      }
    }
    forget(forgotten);
    return forgotten;
  }

  private static void push(ArrayDeque<Object> open, Object[] references) {
    for (Object reference : references) {
      if (reference != null) {
        open.add(reference);
      }
    }
  }

  /** Forgets objects by their numbers. */
  public void forget(Collection<Integer> ids) {
    for (int id : ids) {
      Entry entry = byId.remove(id);
      if (entry != null) {
        byObject.remove(entry.object, entry);
        if (entry.kind == Kind.OPAQUE) {
          opaque--;
        }
      }
    }
    tracked.removeIf(entry -> !byId.containsKey(entry.id));
  }
}
