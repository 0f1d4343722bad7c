package dev.forerun.offload.wire;

/** A JSON text that is being written. */
public final class Json {
  private final StringBuilder text = new StringBuilder();

  private Json separate() {
    char last = text.length() == 0 ? '{' : text.charAt(text.length() - 1);
    if (last != '{' && last != '[' && last != ':') {
      text.append(',');
    }
    return this;
  }

  /** Begins an object. */
  public Json open() {
    separate().text.append('{');
    return this;
  }

  /** Ends an object. */
  public Json close() {
    text.append('}');
    return this;
  }

  /** Begins an array. */
  public Json openArray() {
    separate().text.append('[');
    return this;
  }

  /** Ends an array. */
  public Json closeArray() {
    text.append(']');
    return this;
  }

  /** Writes the name of a field, whose value follows. */
  public Json name(String name) {
    separate().string(name);
    text.append(':');
    return this;
  }

  /** Writes a field. */
  public Json field(String name, String value) {
    return name(name).string(value);
  }

  /** Writes a field. */
  public Json field(String name, long value) {
    name(name).text.append(value);
    return this;
  }

  private Json string(String value) {
    text.append('"');
    for (char c : value.toCharArray()) {
      if (c == '"' || c == '\\') {
        text.append('\\').append(c);
      } else if (c < ' ' || Character.isSurrogate(c)) {
        text.append("\\u%04x".formatted((int) c));
      } else {
        text.append(c);
      }
    }
    text.append('"');
    return this;
  }

  @Override
  public String toString() {
    return text.toString();
  }
}
