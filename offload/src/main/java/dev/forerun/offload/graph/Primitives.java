package dev.forerun.offload.graph;

import dev.forerun.offload.wire.Malformed;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.util.List;

/** Arrays of primitives as bytes, big-endian. */
final class Primitives {
  private static final List<Class<?>> TYPES =
      List.of(
          boolean.class, char.class, byte.class, short.class, int.class, long.class, float.class, double.class, void.class);

  private Primitives() {}

  /** The primitive type of a name; null for another name. */
  static Class<?> type(String name) {
    return TYPES.stream().filter(type -> type.getName().equals(name)).findFirst().orElse(null);
  }

  static int size(Class<?> array) {
    Class<?> type = array.getComponentType();
    return type == long.class || type == double.class
        ? 8
        : type == int.class || type == float.class ? 4 : type == short.class || type == char.class ? 2 : 1;
  }

  static byte[] take(Object array) {
    if (array instanceof byte[] bytes) {
      return bytes.clone();
    }
    byte[] bytes = new byte[Math.multiplyExact(Array.getLength(array), size(array.getClass()))];
    ByteBuffer buffer = ByteBuffer.wrap(bytes);
    if (array instanceof int[] values) {
      buffer.asIntBuffer().put(values);
    } else if (array instanceof long[] values) {
      buffer.asLongBuffer().put(values);
    } else if (array instanceof char[] values) {
      buffer.asCharBuffer().put(values);
    } else if (array instanceof double[] values) {
      buffer.asDoubleBuffer().put(values);
    } else if (array instanceof float[] values) {
      buffer.asFloatBuffer().put(values);
    } else if (array instanceof short[] values) {
      buffer.asShortBuffer().put(values);
    } else {
      boolean[] values = (boolean[]) array;
      for (int i = 0; i < values.length; i++) {
        bytes[i] = (byte) (values[i] ? 1 : 0);
      }
    }
    return bytes;
  }

  /** Puts elements into an array, from an index on. */
  static void put(Object array, int from, byte[] bytes) {
    int count = bytes.length / size(array.getClass());
    if (bytes.length % size(array.getClass()) != 0 || from < 0 || count > Array.getLength(array) - from) {
      throw new Malformed("elements are outside their array");
    }
    ByteBuffer buffer = ByteBuffer.wrap(bytes);
    if (array instanceof byte[] values) {
      System.arraycopy(bytes, 0, values, from, count);
    } else if (array instanceof int[] values) {
      buffer.asIntBuffer().get(values, from, count);
    } else if (array instanceof long[] values) {
      buffer.asLongBuffer().get(values, from, count);
    } else if (array instanceof char[] values) {
      buffer.asCharBuffer().get(values, from, count);
    } else if (array instanceof double[] values) {
      buffer.asDoubleBuffer().get(values, from, count);
    } else if (array instanceof float[] values) {
      buffer.asFloatBuffer().get(values, from, count);
    } else if (array instanceof short[] values) {
      buffer.asShortBuffer().get(values, from, count);
    } else {
      boolean[] values = (boolean[]) array;
      for (int i = 0; i < count; i++) {
        values[from + i] = bytes[i] != 0;
      }
    }
  }
}
