package dev.forerun.offload.graph;

import dev.forerun.offload.wire.Malformed;
import java.util.List;

/** Boxed primitives as a number of their type and 64 bits. */
final class Boxes {
  private static final List<Class<?>> TYPES =
      List.of(
          Integer.class, Long.class, Double.class, Boolean.class, Character.class, Short.class, Byte.class, Float.class);

  private Boxes() {}

  static boolean isBox(Class<?> type) {
    return TYPES.contains(type);
  }

  static int typeOf(Object box) {
    return TYPES.indexOf(box.getClass());
  }

  /** The value of a field of a primitive type, boxed. */
  static Object ofPrimitive(Class<?> type, long bits) {
    Class<?> box = java.lang.invoke.MethodType.methodType(type).wrap().returnType();
    return of(TYPES.indexOf(box), type == boolean.class ? bits & 1 : bits);
  }

  static long bitsOf(Object box) {
    if (box instanceof Double value) {
      return Double.doubleToRawLongBits(value);
    }
    if (box instanceof Float value) {
      return Float.floatToRawIntBits(value);
    }
    if (box instanceof Boolean value) {
      return value ? 1 : 0;
    }
    return box instanceof Character value ? value : ((Number) box).longValue();
  }

  static Object of(int type, long bits) {
    return switch (type) {
      case 0 -> (Object) (int) bits;
      case 1 -> bits;
      case 2 -> Double.longBitsToDouble(bits);
      case 3 -> bits == 1;
      case 4 -> (char) bits;
      case 5 -> (short) bits;
      case 6 -> (byte) bits;
      case 7 -> Float.intBitsToFloat((int) bits);
      default -> throw new Malformed("a box has an unknown type");
    };
  }
}
