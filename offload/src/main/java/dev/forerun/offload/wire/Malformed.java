package dev.forerun.offload.wire;

/** Bytes that the other end should not have sent. The session ends. */
public final class Malformed extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Makes one. */
  public Malformed(String message) {
    super(message);
  }
}
