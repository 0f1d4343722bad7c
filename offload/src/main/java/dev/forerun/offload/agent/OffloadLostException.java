package dev.forerun.offload.agent;

/** An offloaded call ended without a result after it had visible effects, so that it cannot be run again. */
public final class OffloadLostException extends IllegalStateException {
  private static final long serialVersionUID = 1;

  /** Makes one: which root it was, the first effect, and why the call ended. */
  public OffloadLostException(String root, String visible, Throwable cause) {
    super("the offloaded call of %s was lost after a visible effect (%s): %s".formatted(root, visible, cause.getMessage()), cause);
  }
}
