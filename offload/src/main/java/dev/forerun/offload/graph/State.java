package dev.forerun.offload.graph;

import java.util.Arrays;

/** What an object holds: references, and the bits of its primitives. */
record State(Object[] references, long[] bits) {
  /** Whether both hold the same: references are compared by identity. */
  boolean isSame(State other) {
    if (references.length != other.references.length || !Arrays.equals(bits, other.bits)) {
      return false;
    }
    for (int i = 0; i < references.length; i++) {
      if (references[i] != other.references[i]) {
        return false;
      }
    }
    return true;
  }

  /** The state of the fields that slots name. */
  static State of(Object object, Slot[] slots) {
    Object[] references = new Object[slots.length];
    long[] bits = new long[slots.length];
    for (int i = 0; i < slots.length; i++) {
      Object holder = slots[i].holder(object);
      if (slots[i].isReference()) {
        references[i] = Memory.reference(holder, slots[i].offset());
      } else {
        bits[i] = Memory.bits(holder, slots[i]);
      }
    }
    return new State(references, bits);
  }
}
