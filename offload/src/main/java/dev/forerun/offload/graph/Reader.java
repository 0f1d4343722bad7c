package dev.forerun.offload.graph;

import dev.forerun.offload.wire.In;
import dev.forerun.offload.wire.Malformed;
import dev.forerun.offload.wire.Refused;
import java.lang.reflect.Array;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Reads one delta. No code of the application runs meanwhile. Each reference is checked against the type of its field. */
final class Reader {
  /** How many elements new arrays of one delta may have: their bytes are in the frame, those of empty ones are not. */
  private static final int MAX_ELEMENTS = 16 << 20;

  private final Heap heap;
  private final Map<Integer, Lambda> lambdas = new HashMap<>();
  private long elements;

  Reader(Heap heap) {
    this.heap = heap;
  }

  private record Head(int id, Kind kind) {}

  private record Lambda(Lambdas.Form form, int hash, int[] captured) {}

  boolean read(In in) {
    Head[] heads = new Head[in.count(5)];
    Map<Integer, Lambda> open = new HashMap<>();
    for (int i = 0; i < heads.length; i++) {
      heads[i] = new Head(in.i32(), Kind.of(in.u8()));
      if (heads[i].id == 0 || heads[i].id > 0 == heap.server) {
        throw new Malformed("an object has a number of the wrong end");
      }
      if (heads[i].kind == Kind.LAMBDA) {
        open.put(heads[i].id, lambda(in));
      } else {
        heap.bind(heads[i].id, create(in, heads[i].kind), heads[i].kind);
      }
    }
    bodies(in, heads, open);
    int changes = in.count(4);
    for (int i = 0; i < changes; i++) {
      change(in);
    }
    int types = in.count(4);
    for (int i = 0; i < types; i++) {
      statics(in);
    }
    return changes + types > 0;
  }

  private Object create(In in, Kind kind) {
    return switch (kind) {
      case STRING -> string(in);
      case BOX -> Boxes.of(in.u8(), in.i64());
      case ENUM -> Constants.ofEnum(symbol(in), symbol(in));
      case CLASS -> in.u8() == 0 ? type(symbol(in)) : proxy(in);
      case CONSTANT -> Constants.of(symbol(in));
      case TEXT -> Texts.read(in);
      case PRIMITIVES, ARRAY -> array(in, kind);
      case OBJECT -> object(in);
      case COLLECTION -> hashed(Contents.create(load(symbol(in))), in);
      case STUB, OPAQUE -> pinned(in, kind);
      case LAMBDA -> throw new AssertionError();
    };
  }

  private static String string(In in) {
    boolean interned = in.u8() == 1;
    String text = in.text();
    return interned ? text.intern() : text;
  }

  private Object array(In in, Kind kind) {
    Class<?> type = load(symbol(in));
    int length = in.i32();
    if (!type.isArray() || type.getComponentType().isPrimitive() != (kind == Kind.PRIMITIVES) || length < 0) {
      throw new Malformed("an array is of " + type.getName());
    }
    elements += length;
    if (elements > MAX_ELEMENTS) {
      throw new Malformed("arrays have too many elements");
    }
    return Array.newInstance(type.getComponentType(), length);
  }

  private Object object(In in) {
    Class<?> type = load(symbol(in));
    if (!Rules.isPackable(type) || heap.server && Enum.class.isAssignableFrom(type)) {
      throw new Malformed("objects of %s are not packed".formatted(type.getName()));
    }
    return hashed(Memory.allocate(type), in);
  }

  private Object pinned(In in, Kind kind) {
    if (heap.server) {
      throw new Malformed("an object of the function stays on the server");
    }
    Class<?> type = load(symbol(in));
    if (kind == Kind.STUB != Stub.class.isAssignableFrom(type)) {
      throw new Malformed(type.getName() + " cannot stand for an object");
    }
    return hashed(Memory.allocate(type), in);
  }

  private static Object hashed(Object object, In in) {
    int hash = in.i32();
    if (hash != 0 && !Memory.hash(object, hash)) {
      throw new Refused("the identity hash of an object of %s cannot be kept on this JVM".formatted(object.getClass().getName()));
    }
    return object;
  }

  private Lambda lambda(In in) {
    String[] parts = new String[8];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = symbol(in);
    }
    return new Lambda(
        new Lambdas.Form(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6], parts[7], in.u8()), in.i32(), null);
  }

  private void bodies(In in, Head[] heads, Map<Integer, Lambda> open) {
    List<Runnable> fills = new ArrayList<>();
    for (Head head : heads) {
      if (head.kind == Kind.LAMBDA) {
        int[] captured = numbers(in);
        in.count(8);
        lambdas.put(head.id, new Lambda(open.get(head.id).form, open.get(head.id).hash, captured));
      } else if (head.kind == Kind.COLLECTION) {
        content(in, heap.byId.get(head.id), false, fills);
      } else {
        fills.add(body(in, heap.byId.get(head.id)));
      }
    }
    for (Head head : heads) {
      if (head.kind == Kind.LAMBDA) {
        make(head.id);
      }
    }
    fills.forEach(Runnable::run);
    for (Head head : heads) {
      Entry entry = heap.byId.get(head.id);
      if (!isOfConstants(entry.object)) { // those are filled later
        entry.remember();
      }
    }
  }

  /** Makes a lambda, after those that it captured. */
  private Object make(int id) {
    Lambda lambda = lambdas.remove(id);
    if (lambda == null) {
      return heap.object(id);
    }
    Object[] captured = new Object[lambda.captured.length];
    for (int i = 0; i < captured.length; i++) {
      captured[i] = make(lambda.captured[i]);
    }
    Object made = heap.lambdas.make(lambda.form, captured);
    Memory.hash(made, lambda.hash);
    heap.bind(id, made, Kind.LAMBDA);
    return made;
  }

  /** Reads the body of an object; it is put in when all objects are there. */
  private Runnable body(In in, Entry entry) {
    switch (entry.kind) {
      case PRIMITIVES -> {
        byte[] bytes = in.blob();
        return () -> Primitives.put(entry.object, 0, bytes);
      }
      case ARRAY -> {
        int[] ids = numbers(in);
        in.count(8);
        return () -> {
          for (int i = 0; i < ids.length; i++) {
            element(entry, i, ids[i]);
          }
        };
      }
      case OBJECT -> {
        Slot[] slots = Slot.ofObjects(entry.object.getClass());
        long[] values = new long[slots.length];
        for (int i = 0; i < slots.length; i++) {
          values[i] = slots[i].isReference() ? in.i32() : in.i64();
        }
        return () -> {
          for (int i = 0; i < slots.length; i++) {
            put(entry.object, slots[i], values[i]);
          }
        };
      }
      default -> {
        return () -> {};
      }
    }
  }

  private int[] numbers(In in) {
    int[] ids = new int[in.count(4)];
    for (int i = 0; i < ids.length; i++) {
      ids[i] = in.i32();
    }
    return ids;
  }

  private void content(In in, Entry entry, boolean isKnown, List<Runnable> fills) {
    int[] ids = numbers(in);
    long[] bits = new long[in.count(8)];
    for (int i = 0; i < bits.length; i++) {
      bits[i] = in.i64();
    }
    Runnable fill =
        () -> {
          Object[] references = new Object[ids.length];
          for (int i = 0; i < ids.length; i++) {
            references[i] = heap.object(ids[i]);
          }
          if (isKnown && heap.isDry()) {
            entry.twin = new State(references, bits);
            return;
          }
          Contents.put(entry.object, new State(references, bits));
          entry.remember();
        };
    fills.add(isOfConstants(entry.object) ? () -> heap.last(fill) : fill);
  }

  private static void fits(Entry entry, int index, Object value) {
    Object[] array = (Object[]) entry.object;
    if (index < 0 || index >= array.length || value != null && !array.getClass().getComponentType().isInstance(value)) {
      throw new Malformed("an element does not fit into an array of " + array.getClass().getTypeName());
    }
  }

  private void element(Entry entry, int index, int id) {
    Object value = heap.object(id);
    fits(entry, index, value);
    ((Object[]) entry.object)[index] = value;
  }

  private void put(Object object, Slot slot, long value) {
    Object holder = slot.holder(object);
    if (!slot.isReference()) {
      Memory.bits(holder, slot, value);
      return;
    }
    Object reference = heap.object((int) value);
    if (reference != null && !slot.type().isInstance(reference)) {
      throw new Refused(
          "%s.%s cannot hold what stands for its object, of %s"
              .formatted(slot.owner().getName(), slot.name(), reference.getClass().getName()));
    }
    Memory.reference(holder, slot.offset(), reference);
  }

  private void change(In in) {
    Entry entry = heap.byId.get(in.i32());
    if (entry == null || !entry.isTracked()) {
      throw new Malformed("an object changed that is not shared");
    }
    switch (entry.kind) {
      case PRIMITIVES -> {
        int size = Primitives.size(entry.object.getClass());
        for (int from = in.i32(); from >= 0; from = in.i32()) {
          byte[] bytes = in.blob();
          if (from > (entry.bytes.length - bytes.length) / size) {
            throw new Malformed("elements are behind the end of an array");
          }
          if (!heap.isDry()) {
            Primitives.put(entry.object, from, bytes);
          }
          System.arraycopy(bytes, 0, entry.bytes, from * size, bytes.length);
        }
      }
      case ARRAY -> {
        for (int index = in.i32(); index >= 0; index = in.i32()) {
          int id = in.i32();
          fits(entry, index, heap.object(id));
          if (!heap.isDry()) {
            element(entry, index, id);
          }
          entry.twin.references()[index] = heap.object(id);
        }
      }
      case COLLECTION -> {
        List<Runnable> fill = new ArrayList<>();
        content(in, entry, true, fill);
        fill.forEach(Runnable::run);
      }
      default -> fields(in, entry.object, Slot.ofObjects(entry.object.getClass()), entry.twin);
    }
  }

  /** A collection that needs the constants of an enum, which come with the statics of its class. */
  private static boolean isOfConstants(Object object) {
    return object instanceof EnumMap || object instanceof EnumSet;
  }

  /** Reads fields. The other end knows those that it sent: of the rest this end may have changed some meanwhile, and has to tell. */
  private void fields(In in, Object object, Slot[] slots, State twin) {
    for (int index = in.i32(); index >= 0; index = in.i32()) {
      if (index >= slots.length) {
        throw new Malformed("an object has no field " + index);
      }
      long value = slots[index].isReference() ? in.i32() : in.i64();
      if (!heap.isDry()) {
        put(object, slots[index], value);
      }
      if (twin != null && slots[index].isReference()) {
        twin.references()[index] = heap.object((int) value);
      } else if (twin != null) {
        twin.bits()[index] = value;
      }
    }
  }

  private void statics(In in) {
    Class<?> type = load(symbol(in));
    if (Rules.isJdk(type) || heap.server && !heap.statics.containsKey(type)) {
      throw new Malformed("statics of %s are not shared".formatted(type.getName()));
    }
    State known = heap.statics.get(type);
    fields(in, null, Slot.ofClass(type), known);
    if (known == null) {
      heap.statics.put(type, State.of(null, Slot.ofClass(type)));
    }
  }

  private String symbol(In in) {
    int index = in.i32();
    if (index == -1) {
      heap.symbolsIn.add(in.name());
      return heap.symbolsIn.get(heap.symbolsIn.size() - 1);
    }
    if (index < 0 || index >= heap.symbolsIn.size()) {
      throw new Malformed("a symbol is not known");
    }
    return heap.symbolsIn.get(index);
  }

  /** A class that is an object: it may be of a primitive type. */
  private Class<?> type(String name) {
    Class<?> primitive = Primitives.type(name);
    return primitive != null ? primitive : load(name);
  }

  private Class<?> load(String name) {
    try {
      return Class.forName(name, false, heap.types.loader());
    } catch (ClassNotFoundException e) {
      throw new Refused("the class %s is not known".formatted(name));
    }
  }

  private Class<?> proxy(In in) {
    Class<?>[] faces = new Class<?>[in.count(4)];
    for (int i = 0; i < faces.length; i++) {
      faces[i] = load(symbol(in));
    }
    return Proxy.newProxyInstance(heap.types.loader(), faces, (self, method, arguments) -> null).getClass();
  }
}
