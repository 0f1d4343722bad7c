package dev.forerun.offload.graph;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;

/** One field of a layout. The base of a static field is its own; of others it is the object. */
record Slot(String name, Class<?> owner, Class<?> type, long offset, Object base, boolean isFinal) {
  private static final ClassValue<Slot[]> INSTANCE = new Layout(false);
  private static final ClassValue<Slot[]> STATIC = new Layout(true);

  /** The fields of a class's objects that cross, those of its superclasses first. The order is the same wherever the class is loaded. */
  static Slot[] ofObjects(Class<?> type) {
    return INSTANCE.get(type);
  }

  /** The static fields that a class declares. */
  static Slot[] ofClass(Class<?> type) {
    return STATIC.get(type);
  }

  boolean isReference() {
    return !type.isPrimitive();
  }

  int size() {
    return type == long.class || type == double.class
        ? 8
        : type == int.class || type == float.class ? 4 : type == short.class || type == char.class ? 2 : 1;
  }

  Object holder(Object object) {
    return base != null ? base : object;
  }

  private static final class Layout extends ClassValue<Slot[]> {
    private final boolean statics;

    Layout(boolean statics) {
      this.statics = statics;
    }

    @Override
    protected Slot[] computeValue(Class<?> type) {
      List<Slot> slots = new ArrayList<>();
      if (!statics && type.getSuperclass() != null) {
        slots.addAll(List.of(ofObjects(type.getSuperclass())));
      }
      for (Field field : Memory.fields(type)) {
        int modifiers = field.getModifiers();
        if (Modifier.isStatic(modifiers) == statics && !isLeftOut(type, field.getName())) {
          slots.add(
              new Slot(
                  field.getName(),
                  type,
                  field.getType(),
                  Memory.offset(field, statics),
                  statics ? Memory.base(field) : null,
                  Modifier.isFinal(modifiers)));
        }
      }
      return slots.toArray(Slot[]::new);
    }

    /** What the JVM keeps for itself, and caches. */
    private static boolean isLeftOut(Class<?> owner, String name) {
      if (owner == Throwable.class) {
        return name.equals("backtrace") || name.equals("depth");
      }
      if (owner == StackTraceElement.class) {
        return name.equals("declaringClassObject");
      }
      if (owner == Enum.class) {
        return name.equals("hash");
      }
      return owner.getName().startsWith("java.util.Collections$Unmodifiable")
          && (name.equals("keySet") || name.equals("values") || name.equals("entrySet"));
    }
  }
}
