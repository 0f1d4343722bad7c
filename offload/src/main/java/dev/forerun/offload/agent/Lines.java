package dev.forerun.offload.agent;

import java.util.ArrayDeque;

/**
 * Lines of logs and of standard output that a call wrote. They are held back until the call has a visible effect or its result. So a call
 * that is lost can be repeated without a line twice. From then on each line is written at once.
 */
final class Lines {
  private static final int MAX_HELD = 10_000;

  private final ArrayDeque<Runnable> held = new ArrayDeque<>();
  private boolean isReleased;

  /** Takes a line, and reports whether it could not be held back. */
  boolean add(Runnable line) {
    held.add(line);
    if (isReleased || held.size() > MAX_HELD) {
      release();
    }
    return isReleased;
  }

  /** Writes what is held. */
  void release() {
    isReleased = true;
    while (!held.isEmpty()) {
      held.poll().run();
    }
  }
}
