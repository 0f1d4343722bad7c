package dev.forerun.offload.wire;

/** The frames; PROTOCOL.md says what is in each. */
public enum Type {
  HELLO(1),
  PING(2),
  INVOKE(3),
  CLASS(4),
  STATICS(5),
  LOCK(6),
  UNLOCK(7),
  GET(8),
  PUT(9),
  SYNC(10),
  HASH(11),
  RESULT(12),
  THROWN(13),
  REFUSED(14),
  LINE(15),
  PRINT(16),
  ASK(17),
  START(32),
  REPLY(33);

  /** The byte that stands for it. */
  public final int code;

  Type(int code) {
    this.code = code;
  }

  static Type of(int code) {
    for (Type type : values()) {
      if (type.code == code) {
        return type;
      }
    }
    throw new Malformed("a frame has the unknown type " + code);
  }
}
