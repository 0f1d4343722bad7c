package dev.forerun.offload.graph;

import java.util.ConcurrentModificationException;
import java.util.NoSuchElementException;

/** An object that both ends know. */
final class Entry {
  private static final int TRIES = 100;

  final int id;
  final Object object;
  final Kind kind;

  /** What the other end knows of a tracked object; null for others. */
  State twin;

  /** The same for an array of primitives. */
  byte[] bytes;

  Entry(int id, Object object, Kind kind) {
    this.id = id;
    this.object = object;
    this.kind = kind;
  }

  State state() {
    return switch (kind) {
      case OBJECT -> State.of(object, Slot.ofObjects(object.getClass()));
      case ARRAY -> new State(((Object[]) object).clone(), new long[0]);
      case COLLECTION -> Contents.take(object);
      default -> null;
    };
  }

  /** The state, read again if another thread changes the object meanwhile; null if that does not end. */
  State steadyState() {
    for (int i = 0; i < TRIES; i++) {
      try {
        return state();
      } catch (ConcurrentModificationException | IndexOutOfBoundsException | NoSuchElementException | NullPointerException e) {
        Thread.onSpinWait(); // the lock that guards it is another thread's
      }
    }
    return null;
  }

  /** Whether it is compared in each exchange. */
  boolean isTracked() {
    return kind == Kind.ARRAY || kind == Kind.PRIMITIVES || kind == Kind.COLLECTION
        || kind == Kind.OBJECT && Rules.isTracked(object.getClass());
  }

  void remember() {
    if (!isTracked()) {
      return;
    }
    if (kind == Kind.PRIMITIVES) {
      bytes = Primitives.take(object);
    } else {
      twin = state();
    }
  }
}
