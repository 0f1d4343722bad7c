package dev.forerun.offload.graph;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodHandles.Lookup;
import java.lang.invoke.MethodType;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Field;

/**
 * Raw access to fields, and the private parts of the JDK that packing needs. java.lang.invoke has to be open to this class: the agent
 * opens it, and functions are started with --add-opens. jdk.internal.misc.Unsafe is reached by handles, as its signatures differ
 * between versions of Java.
 */
public final class Memory {
  /** May look up everything. */
  public static final Lookup ALL;

  private static final Object UNSAFE;
  private static final MethodHandle GET_REFERENCE;
  private static final MethodHandle PUT_REFERENCE;
  private static final MethodHandle GET_LONG;
  private static final MethodHandle PUT_LONG;
  private static final MethodHandle GET_INT;
  private static final MethodHandle PUT_INT;
  private static final MethodHandle GET_SHORT;
  private static final MethodHandle PUT_SHORT;
  private static final MethodHandle GET_BYTE;
  private static final MethodHandle PUT_BYTE;
  private static final MethodHandle OBJECT_OFFSET;
  private static final MethodHandle STATIC_OFFSET;
  private static final MethodHandle STATIC_BASE;
  private static final MethodHandle ALLOCATE;
  private static final MethodHandle UNINITIALIZED;
  private static final MethodHandle FIELDS;
  private static final MethodHandle ACCESSIBLE;
  private static final int HASH_SHIFT;

  static {
    try {
      Field field = Lookup.class.getDeclaredField("IMPL_LOOKUP");
      field.setAccessible(true);
      ALL = (Lookup) field.get(null);
      Class<?> unsafe = Class.forName("jdk.internal.misc.Unsafe");
      UNSAFE = ALL.findStatic(unsafe, "getUnsafe", MethodType.methodType(unsafe)).invoke();
      GET_REFERENCE = get(unsafe, "getReference", Object.class);
      PUT_REFERENCE = put(unsafe, "putReference", Object.class);
      GET_LONG = get(unsafe, "getLong", long.class);
      PUT_LONG = put(unsafe, "putLong", long.class);
      GET_INT = get(unsafe, "getInt", int.class);
      PUT_INT = put(unsafe, "putInt", int.class);
      GET_SHORT = get(unsafe, "getShort", short.class);
      PUT_SHORT = put(unsafe, "putShort", short.class);
      GET_BYTE = get(unsafe, "getByte", byte.class);
      PUT_BYTE = put(unsafe, "putByte", byte.class);
      OBJECT_OFFSET = of(unsafe, "objectFieldOffset", long.class, Field.class);
      STATIC_OFFSET = of(unsafe, "staticFieldOffset", long.class, Field.class);
      STATIC_BASE = of(unsafe, "staticFieldBase", Object.class, Field.class);
      ALLOCATE = of(unsafe, "allocateInstance", Object.class, Class.class);
      UNINITIALIZED = of(unsafe, "shouldBeInitialized", boolean.class, Class.class);
      FIELDS = ALL.findVirtual(Class.class, "getDeclaredFields0", MethodType.methodType(Field[].class, boolean.class));
      ACCESSIBLE =
          ALL.findVirtual(AccessibleObject.class, "setAccessible0", MethodType.methodType(boolean.class, boolean.class));
      HASH_SHIFT = probe();
    } catch (Throwable e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private Memory() {}

  private static MethodHandle of(Class<?> unsafe, String name, Class<?> result, Class<?>... parameters)
      throws ReflectiveOperationException {
    return ALL.findVirtual(unsafe, name, MethodType.methodType(result, parameters)).bindTo(UNSAFE);
  }

  private static MethodHandle get(Class<?> unsafe, String name, Class<?> type) throws ReflectiveOperationException {
    return of(unsafe, name, type, Object.class, long.class);
  }

  private static MethodHandle put(Class<?> unsafe, String name, Class<?> type) throws ReflectiveOperationException {
    return of(unsafe, name, void.class, Object.class, long.class, type);
  }

  /** Where in the first word of an object its identity hash is; -1 if that was not found out. */
  private static int probe() throws Throwable {
    int found = -1;
    for (int i = 0; i < 8; i++) {
      Object object = new Object();
      int hash = System.identityHashCode(object);
      long word = (long) GET_LONG.invokeExact(object, 0L);
      int shift = -1;
      for (int at = 2; at <= 32; at++) {
        if ((word >>> at & 0x7fffffff) == hash) {
          shift = at;
          break;
        }
      }
      if (shift < 0 || i > 0 && shift != found) {
        return -1;
      }
      found = shift;
    }
    return found;
  }

  static RuntimeException broken(Throwable e) {
    if (e instanceof Error error) {
      throw error;
    }
    throw new IllegalStateException(e);
  }

  static Object reference(Object base, long offset) {
    try {
      return (Object) GET_REFERENCE.invokeExact(base, offset);
    } catch (Throwable e) {
      throw broken(e);
    }
  }

  static void reference(Object base, long offset, Object value) {
    try {
      PUT_REFERENCE.invokeExact(base, offset, value);
    } catch (Throwable e) {
      throw broken(e);
    }
  }

  /** The bits of a field of a primitive type. */
  static long bits(Object base, Slot slot) {
    try {
      return switch (slot.size()) {
        case 8 -> (long) GET_LONG.invokeExact(base, slot.offset());
        case 4 -> (int) GET_INT.invokeExact(base, slot.offset());
        case 2 -> (short) GET_SHORT.invokeExact(base, slot.offset());
        default -> (byte) GET_BYTE.invokeExact(base, slot.offset());
      };
    } catch (Throwable e) {
      throw broken(e);
    }
  }

  static void bits(Object base, Slot slot, long value) {
    try {
      switch (slot.size()) {
        case 8 -> PUT_LONG.invokeExact(base, slot.offset(), value);
        case 4 -> PUT_INT.invokeExact(base, slot.offset(), (int) value);
        case 2 -> PUT_SHORT.invokeExact(base, slot.offset(), (short) value);
        default -> PUT_BYTE.invokeExact(base, slot.offset(), (byte) (slot.type() == boolean.class ? value & 1 : value));
      }
    } catch (Throwable e) {
      throw broken(e);
    }
  }

  static long offset(Field field, boolean isStatic) {
    try {
      return isStatic ? (long) STATIC_OFFSET.invokeExact(field) : (long) OBJECT_OFFSET.invokeExact(field);
    } catch (Throwable e) {
      throw broken(e);
    }
  }

  static Object base(Field field) {
    try {
      return (Object) STATIC_BASE.invokeExact(field);
    } catch (Throwable e) {
      throw broken(e);
    }
  }

  /** An object on which no constructor was called; its class is initialized. */
  static Object allocate(Class<?> type) {
    try {
      return (Object) ALLOCATE.invokeExact(type);
    } catch (Throwable e) {
      throw broken(e);
    }
  }

  static boolean isUninitialized(Class<?> type) {
    try {
      return (boolean) UNINITIALIZED.invokeExact(type);
    } catch (Throwable e) {
      throw broken(e);
    }
  }

  /** All fields that a class declares, those too that reflection hides. */
  static Field[] fields(Class<?> type) {
    try {
      return (Field[]) FIELDS.invokeExact(type, false);
    } catch (Throwable e) {
      throw broken(e);
    }
  }

  /** Makes a member accessible, whatever its module opens. */
  public static <T extends AccessibleObject> T open(T member) {
    try {
      boolean done = (boolean) ACCESSIBLE.invokeExact((AccessibleObject) member, true);
      if (!done) {
        throw new IllegalStateException(member + " stays inaccessible");
      }
      return member;
    } catch (Throwable e) {
      throw broken(e);
    }
  }

  /** Gives an object that has no identity hash yet this one; false if it has another, or if this JVM's layout is not known. */
  static boolean hash(Object object, int hash) {
    if (HASH_SHIFT < 0) {
      return false;
    }
    try {
      long word = (long) GET_LONG.invokeExact(object, 0L);
      long mask = 0x7fffffffL << HASH_SHIFT;
      if ((word & 3) == 1 && (word & mask) == 0) {
        PUT_LONG.invokeExact(object, 0L, word | (long) hash << HASH_SHIFT);
      }
    } catch (Throwable e) {
      throw broken(e);
    }
    return System.identityHashCode(object) == hash;
  }
}
