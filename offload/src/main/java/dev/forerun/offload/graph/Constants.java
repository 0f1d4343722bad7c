package dev.forerun.offload.graph;

import dev.forerun.offload.wire.Malformed;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;

/** Objects in static fields of the JDK that code compares by identity: they are named, never copied. */
final class Constants {
  private static final String[] CLASSES = {
    "java.lang.Throwable", "java.util.Collections", "java.util.HashSet", "java.util.TreeSet", "java.util.Optional",
    "java.util.OptionalInt", "java.util.OptionalLong", "java.util.OptionalDouble", "java.util.ImmutableCollections",
    "java.lang.String", "java.util.Collections$ReverseComparator"
  };
  private static final Map<Object, String> NAMES = new IdentityHashMap<>();
  private static final Map<String, Object> VALUES = new HashMap<>();

  static {
    for (String name : CLASSES) {
      try {
        Class<?> type = Class.forName(name);
        for (Slot slot : Slot.ofClass(type)) {
          Object value = slot.isFinal() && slot.isReference() ? Memory.reference(slot.base(), slot.offset()) : null;
          if (value != null && !(value instanceof String) && !(value instanceof Class)) {
            NAMES.putIfAbsent(value, name + "#" + slot.name());
            VALUES.put(name + "#" + slot.name(), value);
          }
        }
      } catch (ClassNotFoundException e) {
        throw new ExceptionInInitializerError(e);
      }
    }
  }

  private Constants() {}

  /** The name of a constant; null for another object. */
  static String nameOf(Object object) {
    return NAMES.get(object);
  }

  static Object of(String name) {
    Object value = VALUES.get(name);
    if (value == null) {
      throw new Malformed("there is no constant " + name);
    }
    return value;
  }
}
