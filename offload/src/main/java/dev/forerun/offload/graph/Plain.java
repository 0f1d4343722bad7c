package dev.forerun.offload.graph;

import dev.forerun.offload.wire.In;
import dev.forerun.offload.wire.Malformed;
import dev.forerun.offload.wire.Out;

/** Parameters that need no delta: null, boxes, strings, constants of the JDK, objects that stay on the server, and arrays of these. */
public final class Plain {
  private static final int NULL = 0;
  private static final int BOX = 1;
  private static final int STRING = 2;
  private static final int PINNED = 3;
  private static final int ARRAY = 4;
  private static final int CONSTANT = 5;
  private static final int ENUM = 6;

  private Plain() {}

  /** Whether all of these can be written so. */
  public static boolean are(Object[] parameters, Heap heap) {
    for (Object one : parameters) {
      boolean isValue = one == null || one instanceof String || Boxes.isBox(one.getClass()) || Constants.nameOf(one) != null || isEnum(one);
      if (!isValue && !heap.isPinned(one) && !(one.getClass() == Object[].class && are((Object[]) one, heap))) {
        return false;
      }
    }
    return true;
  }

  private static boolean isEnum(Object object) {
    return object instanceof Enum<?> constant && Rules.isJdk(constant.getDeclaringClass());
  }

  /** Writes their count (i32), then for each its form (one byte) and its content: type and bits, text, number, elements, or names. */
  public static Out write(Out out, Object[] parameters, Heap heap) {
    out.i32(parameters.length);
    for (Object one : parameters) {
      if (one == null) {
        out.u8(NULL);
      } else if (one instanceof String text) {
        out.u8(STRING).text(text);
      } else if (Boxes.isBox(one.getClass())) {
        out.u8(BOX).u8(Boxes.typeOf(one)).i64(Boxes.bitsOf(one));
      } else if (Constants.nameOf(one) != null) {
        out.u8(CONSTANT).name(Constants.nameOf(one));
      } else if (isEnum(one)) {
        out.u8(ENUM).name(((Enum<?>) one).getDeclaringClass().getName()).name(((Enum<?>) one).name());
      } else if (one.getClass() == Object[].class) {
        write(out.u8(ARRAY), (Object[]) one, heap);
      } else {
        out.u8(PINNED).i32(heap.idOf(one));
      }
    }
    return out;
  }

  /** Reads what was written. */
  public static Object[] read(In in, Heap heap) {
    return read(in, heap, 0);
  }

  private static Object[] read(In in, Heap heap, int depth) {
    Object[] parameters = new Object[in.count(1)];
    for (int i = 0; i < parameters.length; i++) {
      int form = in.u8();
      parameters[i] =
          switch (form) {
            case NULL -> null;
            case BOX -> Boxes.of(in.u8(), in.i64());
            case STRING -> in.text();
            case PINNED -> heap.object(in.i32());
            case CONSTANT -> Constants.of(in.name());
            case ENUM -> Constants.ofEnum(in.name(), in.name());
            case ARRAY -> read(in, heap, deeper(depth));
            default -> throw new Malformed("a parameter has an unknown form");
          };
    }
    return parameters;
  }

  private static int deeper(int depth) {
    if (depth > 10) {
      throw new Malformed("arrays of parameters are too deep");
    }
    return depth + 1;
  }
}
