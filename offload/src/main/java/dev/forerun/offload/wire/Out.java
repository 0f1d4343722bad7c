package dev.forerun.offload.wire;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** The body of a frame that is being written. Numbers are big-endian. */
public final class Out {
  private byte[] bytes = new byte[256];
  private int length;

  private int room(int more) {
    if (more > Link.MAX_FRAME - length) {
      throw new Refused("a frame is over %d bytes".formatted(Link.MAX_FRAME));
    }
    if (length + more > bytes.length) {
      bytes = Arrays.copyOf(bytes, Math.max(bytes.length * 2, length + more));
    }
    int at = length;
    length += more;
    return at;
  }

  /** Writes one byte. */
  public Out u8(int value) {
    int at = room(1);
    bytes[at] = (byte) value;
    return this;
  }

  /** Writes four bytes. */
  public Out i32(int value) {
    int at = room(4);
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes[at++] = (byte) (value >> shift);
    }
    return this;
  }

  /** Writes eight bytes. */
  public Out i64(long value) {
    return i32((int) (value >> 32)).i32((int) value);
  }

  /** Writes a length (i32) and bytes. */
  public Out blob(byte[] value) {
    i32(value.length);
    int at = room(value.length); // may replace the array
    System.arraycopy(value, 0, bytes, at, value.length);
    return this;
  }

  /** Writes a name: a blob of UTF-8. */
  public Out name(String value) {
    return blob(value.getBytes(StandardCharsets.UTF_8));
  }

  /** Writes a string exactly: a byte 0 and a blob of Latin-1, or a byte 1 and a blob of UTF-16. A lone surrogate survives. */
  public Out text(String value) {
    boolean latin = value.chars().allMatch(c -> c < 256);
    if (latin) {
      return u8(0).blob(value.getBytes(StandardCharsets.ISO_8859_1));
    }
    byte[] wide = new byte[value.length() * 2];
    for (int i = 0; i < value.length(); i++) {
      wide[2 * i] = (byte) (value.charAt(i) >> 8);
      wide[2 * i + 1] = (byte) value.charAt(i);
    }
    return u8(1).blob(wide);
  }

  /** The bytes written so far. */
  public byte[] toBytes() {
    return Arrays.copyOf(bytes, length);
  }
}
