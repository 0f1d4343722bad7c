package dev.forerun.offload.wire;

/**
 * Something that offloading does not support. The call runs on the server instead, if nothing of it was visible yet.
 *
 * <p>The message names what was met and where. It is an Error, so that handlers of the application's exceptions let it pass; should
 * code swallow it all the same, the function's end remembers it and discards the result.
 */
public final class Refused extends Error {
  private static final long serialVersionUID = 1;

  /** Makes a refusal. */
  public Refused(String message) {
    super(message, null, false, false);
  }
}
