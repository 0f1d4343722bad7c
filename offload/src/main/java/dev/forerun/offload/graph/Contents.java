package dev.forerun.offload.graph;

import dev.forerun.offload.wire.Malformed;
import dev.forerun.offload.wire.Refused;
import java.io.ObjectInputStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;
import java.sql.Timestamp;
import java.util.AbstractMap;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.Date;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * JDK collections, dates and text builders as their content. The own fields of a class that extends such a collection follow. No method of the elements is
 * called, as they may be incomplete while a delta is read. A hash map's nodes keep their hashes, and a tree map is built from its order.
 */
final class Contents {
  private static final List<Class<?>> LISTS = List.of(ArrayList.class, LinkedList.class, ArrayDeque.class);
  private static final List<Class<?>> BASES =
      List.of(ArrayList.class, LinkedList.class, ArrayDeque.class, HashMap.class, LinkedHashMap.class, TreeMap.class);
  private static final Set<String> VIEWS = Set.of("keySet", "values", "entrySet", "navigableKeySet", "descendingMap");
  private static final Class<?> SMALL_SET = EnumSet.noneOf(Thread.State.class).getClass();
  private static final Class<?> NODE = inner("java.util.HashMap$Node");
  private static final Class<?> LINKED_NODE = inner("java.util.LinkedHashMap$Entry");
  private static final Map<String, Slot> SLOTS = new HashMap<>();
  private static final MethodHandle BUILD_TREE;

  static {
    for (Class<?> type : List.of(HashMap.class, LinkedHashMap.class, NODE, LINKED_NODE, TreeMap.class, EnumMap.class, EnumSet.class)) {
      for (Slot slot : Slot.ofObjects(type)) {
        SLOTS.put(slot.owner().getSimpleName() + "." + slot.name(), slot);
      }
    }
    try {
      BUILD_TREE =
          Memory.ALL.findVirtual(
              TreeMap.class,
              "buildFromSorted",
              MethodType.methodType(void.class, int.class, Iterator.class, ObjectInputStream.class, Object.class));
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private Contents() {}

  private static Class<?> inner(String name) {
    try {
      return Class.forName(name);
    } catch (ClassNotFoundException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  static boolean isKnown(Class<?> type) {
    return LISTS.contains(type) || type == HashMap.class || type == LinkedHashMap.class || type == TreeMap.class
        || type == EnumMap.class || type == SMALL_SET || type == Date.class || type == Timestamp.class || type == StringBuilder.class
        || type == BitSet.class;
  }

  /** Whether a class of other origin extends a collection of the JDK. */
  static boolean isDerived(Class<?> type) {
    return !Rules.isJdk(type) && !type.isHidden() && !Rules.isGenerated(type) && BASES.contains(base(type))
        && !java.lang.reflect.Modifier.isAbstract(type.getModifiers());
  }

  private static Class<?> base(Class<?> type) {
    Class<?> base = type;
    while (base != null && !Rules.isJdk(base)) {
      base = base.getSuperclass();
    }
    return base;
  }

  /** The fields that a derived class adds. */
  private static List<Slot> own(Class<?> type) {
    List<Slot> own = new ArrayList<>();
    for (Slot slot : Slot.ofObjects(type)) {
      if (!Rules.isJdk(slot.owner())) {
        own.add(slot);
      }
    }
    return own;
  }

  /** An empty collection of a class. */
  static Object create(Class<?> type) {
    if (isDerived(type)) {
      Object derived = Memory.allocate(type);
      fill(derived, create(base(type)));
      return derived;
    }
    if (!isKnown(type)) {
      throw new Malformed(type.getName() + " is not a collection that is packed");
    }
    if (type == ArrayList.class) {
      return new ArrayList<>();
    }
    if (type == LinkedList.class) {
      return new LinkedList<>();
    }
    if (type == ArrayDeque.class) {
      return new ArrayDeque<>();
    }
    if (type == HashMap.class) {
      return new HashMap<>();
    }
    if (type == LinkedHashMap.class) {
      return new LinkedHashMap<>();
    }
    if (type == Date.class) {
      return new Date(0);
    }
    if (type == Timestamp.class) {
      return new Timestamp(0);
    }
    if (type == StringBuilder.class) {
      return new StringBuilder();
    }
    if (type == BitSet.class) {
      return new BitSet();
    }
    return type == TreeMap.class ? new TreeMap<>() : Memory.allocate(type);
  }

  /** The content of a collection. */
  static State take(Object collection) {
    return isDerived(collection.getClass()) ? takeDerived(collection) : takeKnown(collection);
  }

  /** Methods of a derived class may be its own, so its collection is looked at as one of the JDK. */
  private static State takeDerived(Object derived) {
    Object plain = create(base(derived.getClass()));
    copy(plain, derived, plain.getClass());
    State content = takeKnown(plain);
    List<Slot> own = own(derived.getClass());
    State fields = State.of(derived, own.toArray(Slot[]::new));
    Object[] references = Arrays.copyOf(content.references(), content.references().length + own.size());
    System.arraycopy(fields.references(), 0, references, content.references().length, own.size());
    long[] bits = Arrays.copyOf(content.bits(), content.bits().length + own.size());
    System.arraycopy(fields.bits(), 0, bits, content.bits().length, own.size());
    return new State(references, bits);
  }

  private static void putDerived(Object derived, State state) {
    List<Slot> own = own(derived.getClass());
    int references = state.references().length - own.size();
    int bits = state.bits().length - own.size();
    if (references < 0 || bits < 0) {
      throw new Malformed("an object of %s lacks fields".formatted(derived.getClass().getName()));
    }
    Object plain = create(base(derived.getClass()));
    putKnown(plain, new State(Arrays.copyOf(state.references(), references), Arrays.copyOf(state.bits(), bits)));
    copy(derived, plain, plain.getClass());
    for (int i = 0; i < own.size(); i++) {
      Slot slot = own.get(i);
      Object value = state.references()[references + i];
      if (!slot.isReference()) {
        Memory.bits(derived, slot, state.bits()[bits + i]);
      } else if (value == null || slot.type().isInstance(value)) {
        Memory.reference(derived, slot.offset(), value);
      } else {
        throw new Refused("%s.%s cannot hold an object of %s".formatted(slot.owner().getName(), slot.name(), value.getClass().getName()));
      }
    }
  }

  private static State takeKnown(Object collection) {
    if (collection instanceof Date date) {
      int nanos = date instanceof Timestamp stamp ? stamp.getNanos() : 0;
      return new State(new Object[0], new long[] {date.getTime(), nanos});
    }
    if (collection instanceof StringBuilder text) {
      return new State(new Object[0], text.chars().asLongStream().toArray());
    }
    if (collection instanceof BitSet set) {
      return new State(new Object[0], set.toLongArray());
    }
    if (collection instanceof TreeMap<?, ?> map) {
      Object[] pairs = new Object[1 + 2 * map.size()];
      pairs[0] = map.comparator();
      return new State(pairs(map, pairs, 1), new long[0]);
    }
    if (collection instanceof EnumMap<?, ?> map) {
      Object[] pairs = new Object[1 + 2 * map.size()];
      pairs[0] = reference(map, "EnumMap.keyType");
      return new State(pairs(map, pairs, 1), new long[0]);
    }
    if (collection instanceof EnumSet<?> set) {
      Object[] all = new Object[1 + set.size()];
      all[0] = reference(set, "EnumSet.elementType");
      System.arraycopy(set.toArray(), 0, all, 1, set.size());
      return new State(all, new long[0]);
    }
    return collection instanceof HashMap<?, ?> map ? hashed(map) : new State(((Collection<?>) collection).toArray(), new long[0]);
  }

  private static Object[] pairs(Map<?, ?> map, Object[] pairs, int from) {
    int at = from;
    for (Map.Entry<?, ?> entry : map.entrySet()) {
      pairs[at++] = entry.getKey();
      pairs[at++] = entry.getValue();
    }
    return pairs;
  }

  /** Bits: capacity, threshold, load factor, order of access, then the hash of each entry. */
  private static State hashed(HashMap<?, ?> map) {
    Object[] table = (Object[]) reference(map, "HashMap.table");
    Object[] pairs = new Object[2 * map.size()];
    long[] bits = new long[4 + map.size()];
    bits[0] = table == null ? 0 : table.length;
    bits[1] = bits(map, "HashMap.threshold");
    bits[2] = bits(map, "HashMap.loadFactor");
    bits[3] = map instanceof LinkedHashMap ? bits(map, "LinkedHashMap.accessOrder") : 0;
    int at = 0;
    for (Map.Entry<?, ?> entry : map.entrySet()) {
      pairs[2 * at] = entry.getKey();
      pairs[2 * at + 1] = entry.getValue();
      bits[4 + at++] = bits(entry, "Node.hash");
    }
    return new State(pairs, bits);
  }

  /** Replaces the content of a collection. */
  static void put(Object collection, State state) {
    if (isDerived(collection.getClass())) {
      putDerived(collection, state);
    } else {
      putKnown(collection, state);
    }
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static void putKnown(Object collection, State state) {
    Object[] content = state.references();
    if (collection instanceof EnumSet set) {
      if (reference(set, "EnumSet.elementType") == null) {
        fill(set, EnumSet.noneOf((Class) type(content)));
      }
      set.clear();
      for (Object element : Arrays.asList(content).subList(1, content.length)) {
        set.add((Enum) element);
      }
    } else if (collection instanceof EnumMap map) {
      if (reference(map, "EnumMap.keyType") == null) {
        fill(map, new EnumMap((Class) type(content)));
      }
      map.clear();
      even(content.length - 1);
      for (int i = 1; i < content.length; i += 2) {
        map.put((Enum) content[i], content[i + 1]);
      }
    } else if (collection instanceof Date date) {
      time(date, state.bits());
    } else if (collection instanceof StringBuilder text) {
      text.setLength(0);
      for (long one : state.bits()) {
        text.append((char) one);
      }
    } else if (collection instanceof BitSet set) {
      set.clear();
      set.or(BitSet.valueOf(state.bits()));
    } else if (collection instanceof TreeMap map) {
      sort(map, content);
    } else if (collection instanceof HashMap map) {
      hash(map, state);
    } else {
      Collection<Object> list = (Collection<Object>) collection;
      list.clear();
      list.addAll(Arrays.asList(content));
    }
  }

  private static void time(Date date, long[] bits) {
    if (bits.length != 2 || bits[1] < 0 || bits[1] > 999_999_999) {
      throw new Malformed("a date does not fit together");
    }
    date.setTime(bits[0]);
    if (date instanceof Timestamp stamp) {
      stamp.setNanos((int) bits[1]);
    }
  }

  private static Class<?> type(Object[] content) {
    if (content.length > 0 && content[0] instanceof Class<?> type && type.isEnum()) {
      return type;
    }
    throw new Malformed("a collection of constants names no enum");
  }

  private static void even(int count) {
    if (count < 0 || count % 2 != 0) {
      throw new Malformed("a map has half a pair");
    }
  }

  /** Copies the fields of a fresh collection into one that was allocated. */
  private static void fill(Object target, Object fresh) {
    copy(target, fresh, fresh.getClass());
  }

  /** Copies the fields of a class. A view that a map keeps of itself stays behind. */
  private static void copy(Object target, Object source, Class<?> type) {
    for (Slot slot : Slot.ofObjects(type)) {
      if (!slot.isReference()) {
        Memory.bits(target, slot, Memory.bits(source, slot));
      } else if (!VIEWS.contains(slot.name())) {
        Memory.reference(target, slot.offset(), Memory.reference(source, slot.offset()));
      }
    }
  }

  private static void sort(TreeMap<?, ?> map, Object[] content) {
    even(content.length - 1);
    List<Map.Entry<Object, Object>> entries = new ArrayList<>();
    for (int i = 1; i < content.length; i += 2) {
      entries.add(new AbstractMap.SimpleImmutableEntry<>(content[i], content[i + 1]));
    }
    map.clear();
    if (content[0] != null && !(content[0] instanceof java.util.Comparator)) {
      throw new Malformed("a map's comparator is none");
    }
    reference(map, "TreeMap.comparator", content[0]);
    try {
      BUILD_TREE.invoke(map, entries.size(), entries.iterator(), (ObjectInputStream) null, (Object) null);
    } catch (Throwable e) {
      throw Memory.broken(e);
    }
  }

  private static void hash(HashMap<?, ?> map, State state) {
    Object[] content = state.references();
    long[] bits = state.bits();
    int count = bits.length - 4;
    int capacity = count < 0 ? -1 : (int) bits[0];
    if (count < 0 || content.length != 2 * count || capacity != 0 && Integer.bitCount(capacity) != 1 || capacity < 0
        || capacity == 0 && count > 0 || capacity > 1 << 22) {
      throw new Malformed("a map does not fit together");
    }
    map.clear();
    Object[] table = capacity == 0 ? null : (Object[]) java.lang.reflect.Array.newInstance(NODE, capacity);
    boolean linked = map instanceof LinkedHashMap;
    Object[] tails = new Object[capacity];
    Object before = null;
    for (int i = 0; i < count; i++) {
      Object key = content[2 * i];
      int hash = isByIdentity(key) ? spread(System.identityHashCode(key)) : (int) bits[4 + i];
      Object node = Memory.allocate(linked ? LINKED_NODE : NODE);
      bits(node, "Node.hash", hash);
      reference(node, "Node.key", key);
      reference(node, "Node.value", content[2 * i + 1]);
      int bucket = hash & capacity - 1;
      if (tails[bucket] == null) {
        table[bucket] = node;
      } else {
        reference(tails[bucket], "Node.next", node);
      }
      tails[bucket] = node;
      if (linked) {
        reference(node, "Entry.before", before);
        if (before == null) {
          reference(map, "LinkedHashMap.head", node);
        } else {
          reference(before, "Entry.after", node);
        }
        before = node;
      }
    }
    if (linked) {
      reference(map, "LinkedHashMap.tail", before);
      bits(map, "LinkedHashMap.accessOrder", bits[3]);
    }
    reference(map, "HashMap.table", table);
    bits(map, "HashMap.size", count);
    bits(map, "HashMap.threshold", bits[1]);
    bits(map, "HashMap.loadFactor", bits[2]);
  }

  /** Whether an object's hash code is that of its identity, which the two ends need not share. */
  private static boolean isByIdentity(Object key) {
    return key != null && (key instanceof Class || Identities.isByIdentity(key.getClass()));
  }

  private static int spread(int hash) {
    return hash ^ hash >>> 16;
  }

  private static Object reference(Object object, String slot) {
    return Memory.reference(object, SLOTS.get(slot).offset());
  }

  private static void reference(Object object, String slot, Object value) {
    Memory.reference(object, SLOTS.get(slot).offset(), value);
  }

  private static long bits(Object object, String slot) {
    return Memory.bits(object, SLOTS.get(slot));
  }

  private static void bits(Object object, String slot, long value) {
    Memory.bits(object, SLOTS.get(slot), value);
  }
}
