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
    "java.lang.String", "java.util.Collections$ReverseComparator", "java.util.logging.Level"
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
        // a Java that was made without the module has no object of the class either
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

  /** A constant of an enum of the JDK. */
  @SuppressWarnings({"unchecked", "rawtypes"})
  static Object ofEnum(String type, String name) {
    try {
      Class<?> loaded = Class.forName(type, false, ClassLoader.getPlatformClassLoader());
      if (loaded.isEnum() && Rules.isJdk(loaded)) {
        return Enum.valueOf((Class) loaded, name);
      }
    } catch (ClassNotFoundException | IllegalArgumentException e) {
      // told below
    }
    throw new Malformed("the JDK has no constant %s of an enum %s".formatted(name, type));
  }
}
