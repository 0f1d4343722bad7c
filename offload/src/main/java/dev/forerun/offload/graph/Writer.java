package dev.forerun.offload.graph;

import dev.forerun.offload.wire.Out;
import dev.forerun.offload.wire.Refused;
import java.lang.invoke.SerializedLambda;
import java.lang.reflect.Array;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;

/** Writes one delta. First all new objects are found and numbered, then written; so nothing is written that refers to what follows. */
final class Writer {
  private final Heap heap;
  private final List<Entry> fresh = new ArrayList<>();
  private final List<State> states = new ArrayList<>();

  Writer(Heap heap) {
    this.heap = heap;
  }

  private record Change(Entry entry, State was, State is, byte[] bytesWere, byte[] bytes) {}

  void write(Out out, Collection<?> roots, Collection<Class<?>> ofClasses) {
    for (Object root : roots) {
      find(root, null);
    }
    List<Change> changes = heap.isDry() ? List.of() : changes();
    List<Class<?>> changed = new ArrayList<>(ofClasses);
    for (Class<?> type : heap.statics.keySet()) {
      if (!heap.isDry() && !changed.contains(type) && !State.of(null, Slot.ofClass(type)).isSame(heap.statics.get(type))) {
        changed.add(type);
      }
    }
    List<State> ofStatics = new ArrayList<>();
    for (Class<?> type : changed) {
      State state = State.of(null, Slot.ofClass(type));
      ofStatics.add(state);
      findAll(state.references(), null);
    }
    for (int i = 0; i < fresh.size(); i++) { // grows meanwhile
      states.add(children(fresh.get(i)));
    }
    heads(out);
    bodies(out);
    out.i32(changes.size());
    changes.forEach(change -> change(out, change));
    out.i32(changed.size());
    for (int i = 0; i < changed.size(); i++) {
      statics(out, changed.get(i), ofStatics.get(i));
    }
  }

  private List<Change> changes() {
    List<Change> changes = new ArrayList<>();
    for (Entry entry : heap.tracked) {
      if (entry.kind == Kind.PRIMITIVES) {
        byte[] is = Primitives.take(entry.object);
        if (!Arrays.equals(is, entry.bytes)) {
          changes.add(new Change(entry, null, null, entry.bytes, is));
          entry.bytes = is;
        }
        continue;
      }
      State is = entry.steadyState();
      if (is != null && !is.isSame(entry.twin)) { // a thread that holds no lock need not see the change of another
        changes.add(new Change(entry, entry.twin, is, null, null));
        entry.twin = is;
      }
    }
    for (Change change : changes) {
      if (change.is != null) {
        findAll(change.is.references(), holder(change.entry));
      }
    }
    return changes;
  }

  /** The class of a holder whose code is the JDK's, so that it must not hold an opaque reference; null for others. */
  private static Class<?> holder(Entry entry) {
    Class<?> type = entry.object.getClass();
    return entry.kind != Kind.OBJECT || Rules.isJdk(type) || type.isRecord() ? type : null;
  }

  private void findAll(Object[] references, Class<?> holder) {
    for (Object reference : references) {
      find(reference, holder);
    }
  }

  private void find(Object object, Class<?> holder) {
    if (object == null) {
      return;
    }
    Entry entry = heap.byObject.get(object);
    if (entry == null) {
      if (object instanceof Stub) {
        throw new Refused("a stand-in of the class %s outlived its object".formatted(object.getClass().getName()));
      }
      if (object instanceof Throwable thrown) {
        thrown.getStackTrace(); // fills the field
      }
      heap.check(object instanceof Class<?> type ? type : object.getClass());
      entry = heap.bear(object, heap.rules.of(object));
      fresh.add(entry);
    }
    boolean isOpaque = entry.kind == Kind.OPAQUE || entry.kind == Kind.STUB && Rules.hasOpaqueBase(object.getClass());
    if (holder != null && (isOpaque || heap.isOpaque(object))) {
      throw new Refused("%s holds an object of %s, which code of the JDK would get".formatted(holder.getTypeName(), object.getClass().getName()));
    }
  }

  /** Finds what a new object refers to. */
  private State children(Entry entry) {
    if (entry.kind == Kind.LAMBDA) {
      SerializedLambda form = Lambdas.serialized(entry.object);
      Object[] captured = new Object[form.getCapturedArgCount()];
      for (int i = 0; i < captured.length; i++) {
        captured[i] = form.getCapturedArg(i);
      }
      boolean ofJdk = form.getImplClass().startsWith("java/");
      findAll(captured, ofJdk ? entry.object.getClass() : null);
      return new State(captured, new long[0]);
    }
    State state = entry.steadyState();
    if (state == null && entry.isTracked() && entry.kind != Kind.PRIMITIVES) {
      throw new Refused("an object of %s is being changed by another thread".formatted(entry.object.getClass().getName()));
    }
    if (state != null) {
      findAll(state.references(), holder(entry));
    }
    return state;
  }

  private void heads(Out out) {
    out.i32(fresh.size());
    for (Entry entry : fresh) {
      Object object = entry.object;
      Class<?> type = object.getClass();
      out.i32(entry.id).u8(entry.kind.ordinal());
      switch (entry.kind) {
        case STRING -> string(out, (String) object);
        case BOX -> out.u8(Boxes.typeOf(object)).i64(Boxes.bitsOf(object));
        case ENUM -> symbol(symbol(out, ((Enum<?>) object).getDeclaringClass().getName()), ((Enum<?>) object).name());
        case CLASS -> type(out, (Class<?>) object);
        case CONSTANT -> symbol(out, Constants.nameOf(object));
        case TEXT -> Texts.write(out, object);
        case PRIMITIVES, ARRAY -> symbol(out, type.getName()).i32(Array.getLength(object));
        case STUB -> symbol(out, heap.types.stubOf(object)).i32(Identities.of(object));
        case OBJECT, COLLECTION, OPAQUE -> symbol(out, type.getName()).i32(entry.kind == Kind.OPAQUE ? System.identityHashCode(object) : Identities.of(object));
        case LAMBDA -> lambda(out, object);
      }
    }
  }

  private static void string(Out out, String string) {
    out.u8(string.length() <= 64 && string.intern() == string ? 1 : 0).text(string);
  }

  private void type(Out out, Class<?> type) {
    if (!Proxy.isProxyClass(type)) {
      if (type.isHidden()) {
        throw new Refused("the hidden class %s cannot cross".formatted(type.getName()));
      }
      symbol(out.u8(0), type.getName());
      return;
    }
    out.u8(1).i32(type.getInterfaces().length);
    for (Class<?> face : type.getInterfaces()) {
      symbol(out, face.getName());
    }
  }

  private void lambda(Out out, Object lambda) {
    Lambdas.Form form = Lambdas.form(Lambdas.serialized(lambda));
    for (String part : new String[] {form.capturing(), form.face(), form.name(), form.signature(), form.owner(), form.method(), form.type(), form.instantiated()}) {
      symbol(out, part);
    }
    out.u8(form.kind()).i32(System.identityHashCode(lambda));
  }

  private Out symbol(Out out, String symbol) {
    Integer known = heap.symbolsOut.putIfAbsent(symbol, heap.symbolsOut.size());
    return known != null ? out.i32(known) : out.i32(-1).name(symbol);
  }

  private void bodies(Out out) {
    for (int i = 0; i < fresh.size(); i++) {
      Entry entry = fresh.get(i);
      State state = states.get(i);
      switch (entry.kind) {
        case PRIMITIVES -> {
          entry.bytes = Primitives.take(entry.object);
          out.blob(entry.bytes);
        }
        case OBJECT -> {
          Slot[] slots = Slot.ofObjects(entry.object.getClass());
          for (int at = 0; at < slots.length; at++) {
            value(out, slots[at], state, at);
          }
        }
        case ARRAY, COLLECTION, LAMBDA -> whole(out, state);
        default -> {}
      }
      if (entry.isTracked()) {
        entry.twin = entry.kind == Kind.PRIMITIVES ? null : state; // as it was sent: another thread may have changed the object meanwhile
        heap.tracked.add(entry);
      }
    }
  }

  private void whole(Out out, State state) {
    out.i32(state.references().length);
    for (Object reference : state.references()) {
      out.i32(heap.idOf(reference));
    }
    out.i32(state.bits().length);
    for (long bits : state.bits()) {
      out.i64(bits);
    }
  }

  private void value(Out out, Slot slot, State state, int at) {
    if (slot.isReference()) {
      out.i32(heap.idOf(state.references()[at]));
    } else {
      out.i64(state.bits()[at]);
    }
  }

  private void change(Out out, Change change) {
    out.i32(change.entry.id);
    switch (change.entry.kind) {
      case PRIMITIVES -> elements(out, change);
      case COLLECTION -> whole(out, change.is);
      case ARRAY -> {
        for (int i = 0; i < change.is.references().length; i++) {
          if (change.is.references()[i] != change.was.references()[i]) {
            out.i32(i).i32(heap.idOf(change.is.references()[i]));
          }
        }
        out.i32(-1);
      }
      default -> fields(out, Slot.ofObjects(change.entry.object.getClass()), change.was, change.is);
    }
  }

  private void fields(Out out, Slot[] slots, State was, State is) {
    for (int i = 0; i < slots.length; i++) {
      if (was == null || is.references()[i] != was.references()[i] || is.bits()[i] != was.bits()[i]) {
        out.i32(i);
        value(out, slots[i], is, i);
      }
    }
    out.i32(-1);
  }

  /** Runs of elements that differ: from where on, and their bytes. */
  private static void elements(Out out, Change change) {
    int size = Primitives.size(change.entry.object.getClass());
    byte[] is = change.bytes;
    for (int from = 0; from < is.length; from += size) {
      int to = from;
      while (to < is.length && !Arrays.equals(is, to, to + size, change.bytesWere, to, to + size)) {
        to += size;
      }
      if (to > from) {
        out.i32(from / size).blob(Arrays.copyOfRange(is, from, to));
        from = to;
      }
    }
    out.i32(-1);
  }

  private void statics(Out out, Class<?> type, State state) {
    symbol(out, type.getName());
    fields(out, Slot.ofClass(type), heap.statics.get(type), state);
    heap.statics.put(type, state);
  }
}
