package dev.forerun.offload.wire;

import java.nio.charset.StandardCharsets;

/** The body of a frame that is being read. What does not fit raises {@link Malformed}. */
public final class In {
  private final byte[] bytes;
  private int at;

  /** Reads these bytes. */
  public In(byte[] bytes) {
    this.bytes = bytes;
  }

  private int take(int count) {
    if (count < 0 || count > bytes.length - at) {
      throw new Malformed("a frame ends within a value");
    }
    int from = at;
    at += count;
    return from;
  }

  /** Reads one byte. */
  public int u8() {
    return bytes[take(1)] & 255;
  }

  /** Reads four bytes. */
  public int i32() {
    int from = take(4);
    return bytes[from] << 24 | (bytes[from + 1] & 255) << 16 | (bytes[from + 2] & 255) << 8 | bytes[from + 3] & 255;
  }

  /** Reads eight bytes. */
  public long i64() {
    return (long) i32() << 32 | i32() & 0xffffffffL;
  }

  /** Reads a count of things that take at least so many bytes each, so that no count allocates more than the frame's size allows. */
  public int count(int leastBytes) {
    int count = i32();
    if (count < 0 || (long) count * leastBytes > bytes.length - at) {
      throw new Malformed("a count is over the frame's length");
    }
    return count;
  }

  /** Reads a blob. */
  public byte[] blob() {
    int count = i32();
    int from = take(count);
    byte[] copy = new byte[count];
    System.arraycopy(bytes, from, copy, 0, count);
    return copy;
  }

  /** Reads a name. */
  public String name() {
    return new String(blob(), StandardCharsets.UTF_8);
  }

  /** Reads a string. */
  public String text() {
    int form = u8();
    byte[] coded = blob();
    if (form == 0) {
      return new String(coded, StandardCharsets.ISO_8859_1);
    }
    if (form != 1 || coded.length % 2 != 0) {
      throw new Malformed("a string has an unknown form");
    }
    char[] chars = new char[coded.length / 2];
    for (int i = 0; i < chars.length; i++) {
      chars[i] = (char) (coded[2 * i] << 8 | coded[2 * i + 1] & 255);
    }
    return new String(chars);
  }

  /** Whether everything was read. */
  public boolean isAtEnd() {
    return at == bytes.length;
  }
}
