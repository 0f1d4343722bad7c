package dev.forerun.offload.graph;

/** How a reference crosses. */
public enum Kind {
  /** A string, with its identity. */
  STRING,
  /** A boxed primitive. */
  BOX,
  /** A constant of an enum of the JDK, by name; constants of others are objects. */
  ENUM,
  /** A class, by name. */
  CLASS,
  /** A value of a static field of the JDK, by name. */
  CONSTANT,
  /** A JDK object that its text makes again: Locale, Charset, Pattern ... */
  TEXT,
  /** An array of primitives. */
  PRIMITIVES,
  /** An array of references. */
  ARRAY,
  /** An object that is packed field by field. */
  OBJECT,
  /** A JDK collection or date, packed as its content. */
  COLLECTION,
  /** A lambda or method reference of a class that was woven. */
  LAMBDA,
  /** An object that stays on the server; in the function a generated class stands for it, whose methods are calls of the server. */
  STUB,
  /**
   * An object that stays on the server, of a JDK class that no generated class can stand for. In the function an empty object of the
   * very class stands for it. Woven code calls the server instead; it never reaches code of the JDK.
   */
  OPAQUE;

  private static final Kind[] ALL = values();

  static Kind of(int code) {
    if (code >= ALL.length) {
      throw new dev.forerun.offload.wire.Malformed("an object has an unknown kind");
    }
    return ALL[code];
  }
}
