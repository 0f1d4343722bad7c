package dev.forerun.runtime;

import com.google.gson.JsonObject;

/**
 * One frame of the runtime protocol.
 *
 * @param type what it is for
 * @param header an object, empty when the frame has none
 * @param payload its bytes
 */
record Frame(int type, JsonObject header, byte[] payload) {
  static final int INIT = 2;
  static final int INIT_DONE = 3;
  static final int READY = 16;
  static final int RUN = 17;
  static final int RESULT = 18;

  static Frame of(int type) {
    return new Frame(type, new JsonObject(), new byte[0]);
  }

  static Frame of(int type, JsonObject header) {
    return new Frame(type, header, new byte[0]);
  }

  /** A member of the header that is text; empty when it is not there. */
  String text(String name) {
    return header.has(name) ? header.get(name).getAsString() : "";
  }
}
