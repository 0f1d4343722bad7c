package dev.forerun.offload.graph;

import dev.forerun.offload.wire.Refused;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.IdentityHashMap;
import java.util.Map;

/**
 * Digests of graphs of objects on the server, to compare two results: equal classes, values and sharing have equal digests. Objects that
 * stay on the server are compared by identity, exceptions by class, message and cause.
 */
public final class Likeness {
  private static final int MAX_OBJECTS = 100_000;

  private final Rules rules;
  private final MessageDigest digest;
  private final Map<Object, Integer> seen = new IdentityHashMap<>();
  private final ArrayDeque<Object> open = new ArrayDeque<>();

  private Likeness(Rules rules) {
    this.rules = rules;
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The digest of what an object refers to; Refused if that is over 100,000 objects, or one is changed meanwhile. */
  public static String of(Object root, Rules rules) {
    Likeness likeness = new Likeness(rules);
    likeness.reference(root);
    while (!likeness.open.isEmpty()) {
      likeness.describe(likeness.open.poll());
    }
    return HexFormat.of().formatHex(likeness.digest.digest());
  }

  private void add(String text) {
    digest.update(text.getBytes(StandardCharsets.UTF_8));
    digest.update((byte) 0xff);
  }

  private void reference(Object object) {
    if (object == null) {
      add("null");
    } else if (object instanceof String text) {
      add("text " + text.length());
      add(text);
    } else if (Boxes.isBox(object.getClass())) {
      add("box %d %d".formatted(Boxes.typeOf(object), Boxes.bitsOf(object)));
    } else {
      Integer known = seen.putIfAbsent(object, seen.size());
      add("object " + (known == null ? seen.size() - 1 : known));
      if (known == null) {
        open.add(object);
      }
      if (seen.size() > MAX_OBJECTS) {
        throw new Refused("a result of more than %d objects is not compared".formatted(MAX_OBJECTS));
      }
    }
  }

  private void describe(Object object) {
    add(object.getClass().isHidden() ? "hidden" : object.getClass().getName());
    if (object instanceof Throwable thrown) {
      reference(thrown.getMessage());
      reference(thrown.getCause());
      return;
    }
    Kind kind;
    try {
      kind = rules.of(object);
    } catch (Refused e) {
      kind = Kind.STUB;
    }
    switch (kind) {
      case ENUM -> add(((Enum<?>) object).name());
      case CLASS -> add(((Class<?>) object).getName());
      case CONSTANT -> add(Constants.nameOf(object));
      case TEXT -> add(object.toString());
      case PRIMITIVES -> digest.update(Primitives.take(object));
      case STUB, OPAQUE -> add("stays " + System.identityHashCode(object));
      case LAMBDA -> add("lambda");
      default -> state(new Entry(0, object, kind).steadyState(), object);
    }
  }

  private void state(State state, Object object) {
    if (state == null) {
      throw new Refused("a result of %s is being changed by another thread".formatted(object.getClass().getName()));
    }
    for (Object reference : state.references()) {
      reference(reference);
    }
    add(object instanceof HashMap ? "" : Arrays.toString(state.bits())); // those of a hash map are capacities and identity hashes
  }
}
